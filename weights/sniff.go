package weights

import "bytes"

// sniff recognises the files that are commonly found under a safetensors name, by their first bytes, and returns what to
// say about them; "" for anything else.
func sniff(data []byte) string {
	head := data[:min(len(data), 512)]
	has := func(prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) }
	switch {
	case has("version https://git-lfs"):
		return "this is a Git LFS pointer, not the file itself: run `git lfs pull` in the repository, or pull the model again"
	case has("PK\x03\x04"),
		len(head) > 2 && head[0] == 0x80 && 2 <= head[1] && head[1] <= 5: // pickle protocols 2 to 5
		return "not a safetensors file (looks like a PyTorch archive): pickled files are not read because they can run code; convert it to safetensors"
	case has("GGUF"):
		return "not a safetensors file (this is a GGUF file)"
	}
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"))
	for _, tag := range []string{"<!doctype", "<html", "<head", "<?xml"} {
		if bytes.HasPrefix(text, []byte(tag)) {
			return "not a safetensors file (this is a web page, perhaps the error page of a failed download): pull the model again"
		}
	}
	return ""
}
