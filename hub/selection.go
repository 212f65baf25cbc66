package hub

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/internal/jsonwords"
)

// Which files of a repository a pipeline needs: the rules of DiffusionPipeline.download (diffusers, pipelines/
// pipeline_loading_utils.py), so that both fetch the same files.

// modelIndex is what model_index.json says: the pipeline's class, and for each component its library and class.
type modelIndex struct {
	Class      string
	Components map[string][2]string // empty strings for null
	Ignore     []string
}

func parseModelIndex(data []byte) (modelIndex, error) {
	m := modelIndex{Components: map[string][2]string{}}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return m, fmt.Errorf("model_index.json: %w", jsonwords.Explain(data, err))
	}
	for name, value := range raw {
		switch name {
		case "_class_name":
			var class any
			json.Unmarshal(value, &class)
			switch c := class.(type) {
			case string:
				m.Class = c
			case []any: // module and class of a pipeline with its own code
				if len(c) > 0 {
					m.Class = fmt.Sprint(c[len(c)-1])
				}
			}
		case "_ignore_files":
			json.Unmarshal(value, &m.Ignore)
		default:
			var pair []*string
			if json.Unmarshal(value, &pair) != nil || pair == nil {
				continue
			}
			if safePath(name) != nil || strings.Contains(name, "/") {
				return m, fmt.Errorf("model_index.json: %.60q is not a component's name", name)
			}
			var c [2]string
			for i, s := range pair[:min(2, len(pair))] {
				if s != nil {
					c[i] = *s
				}
			}
			m.Components[name] = c
		}
	}
	return m, nil
}

const (
	weightPrefix = `(diffusion_pytorch_model|model|weights|pytorch_model)`
	weightSuffix = `(bin|safetensors|onnx|pb)`
)

var (
	plainWeight = regexp.MustCompile(`^` + weightPrefix + `(-\d{5}-of-\d{5})?\.` + weightSuffix + `$`)
	plainIndex  = regexp.MustCompile(`^` + weightPrefix + `\.` + weightSuffix + `\.index\.json`)
)

// variantPatterns match weight files, and then their indexes, of a variant such as fp16, in the newer and the legacy
// spelling.
func variantPatterns(v string) (file, index, oldFile, oldIndex *regexp.Regexp) {
	v = regexp.QuoteMeta(v)
	return regexp.MustCompile(`^` + weightPrefix + `\.(` + v + `|` + v + `-\d{5}-of-\d{5})\.` + weightSuffix + `$`),
		regexp.MustCompile(`^` + weightPrefix + `\.` + weightSuffix + `\.index\.` + v + `\.json$`),
		regexp.MustCompile(`^.*-\d{5}-of-\d{5}\.` + v + `\.[a-z]+$`),
		regexp.MustCompile(`^` + weightPrefix + `\.` + weightSuffix + `\.` + v + `\.index\.json$`)
}

// The files at the root that a pipeline may need.
var rootFiles = []string{
	"scheduler_config.json", "config.json", "model_index.json", "pipeline.py", "chat_template.jinja",
	"generation_config.json", "processor_config.json", "tokenizer.json", "tokenizer_config.json",
}

// selectPipeline returns which of the names a pipeline needs. Variant may be empty.
func selectPipeline(names []string, m modelIndex, variant string) ([]string, error) {
	folders := map[string]bool{}
	for c := range m.Components {
		folders[c] = true
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(m.Ignore, n) })

	plain, variants, legacy := map[string][]string{}, map[string][]string{}, map[string][]string{}
	anyVariant := variant == ""
	var file, index, oldFile, oldIndex *regexp.Regexp
	if variant != "" {
		file, index, oldFile, oldIndex = variantPatterns(variant)
	}
	for _, n := range names {
		base, folder := path.Base(n), ""
		if strings.Count(n, "/") == 1 {
			folder = path.Dir(n)
		} else if strings.Contains(n, "/") {
			continue
		}
		if folder != "" && !folders[folder] {
			continue
		}
		if variant != "" && (file.MatchString(base) || index.MatchString(base)) {
			variants[folder] = append(variants[folder], n)
			anyVariant = true
		} else if variant != "" && (oldFile.MatchString(base) || oldIndex.MatchString(base)) {
			legacy[folder] = append(legacy[folder], n)
			anyVariant = true
		} else if plainWeight.MatchString(base) || plainIndex.MatchString(base) {
			plain[folder] = append(plain[folder], n)
		}
	}
	if !anyVariant {
		return nil, fmt.Errorf("there is no variant %q of these weights: leave --variant out, or choose another", variant)
	}
	choice := map[string][]string{} // weights by folder
	for folder := range folders {
		for _, set := range []map[string][]string{variants, legacy, plain} {
			if len(set[folder]) > 0 {
				choice[folder] = set[folder]
				break
			}
		}
	}
	ignored := []string{".bin", ".msgpack", ".onnx", ".pb"}
	if !safetensorsEverywhere(choice) {
		ignored[0] = ".safetensors"
	}

	var out []string
	for _, n := range names {
		folder, base := path.Dir(n), path.Base(n)
		top, _, nested := strings.Cut(n, "/")
		needed := false
		switch weights := choice[top]; {
		case !nested:
			needed = slices.Contains(rootFiles, n)
		case !folders[top]:
		case len(weights) > 0:
			needed = slices.Contains(weights, n) || folder == top && base == "config.json"
		default:
			needed = true // a scheduler, a tokenizer: all of the folder
		}
		for _, suffix := range ignored {
			if strings.HasSuffix(base, suffix) || strings.Contains(base, suffix+".index.") && strings.HasSuffix(base, "json") {
				needed = false
			}
		}
		if needed {
			out = append(out, n)
		}
	}
	return out, nil
}

// safetensorsEverywhere reports whether each component that has weights has them as safetensors.
func safetensorsEverywhere(weights map[string][]string) bool {
	for _, names := range weights {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".safetensors") }) {
			return false
		}
	}
	return true
}

// selectPlain returns what is wanted of a repository that is no pipeline: all, but weights only once, as safetensors
// where there are some in the same folder.
func selectPlain(names []string) []string {
	safe := map[string]bool{}
	for _, n := range names {
		if strings.HasSuffix(n, ".safetensors") {
			safe[path.Dir(n)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		switch path.Ext(n) {
		case ".bin", ".pt", ".pth", ".ckpt", ".msgpack", ".h5", ".onnx", ".pb", ".ot":
			return safe[path.Dir(n)]
		}
		return strings.HasSuffix(n, ".bin.index.json") && safe[path.Dir(n)]
	})
}

// patterns are shell patterns: a star matches slashes too, and a pattern that ends with a slash stands for all below it,
// as in huggingface_hub.
type patterns []*regexp.Regexp

func compile(shell []string) (p patterns) {
	for _, s := range shell {
		if strings.HasSuffix(s, "/") {
			s += "*"
		}
		if re := translate(s); re != nil {
			p = append(p, re)
		}
	}
	return p
}

// match reports whether one of the patterns matches the path.
func (p patterns) match(name string) bool {
	return slices.ContainsFunc(p, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// translate is Python's fnmatch.translate. It returns nil for a pattern that matches nothing.
func translate(pattern string) *regexp.Regexp {
	var re strings.Builder
	re.WriteString(`(?s)^`)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			re.WriteString(`.*`)
		case '?':
			re.WriteString(`.`)
		case '[':
			j := i + 1
			if j < len(pattern) && pattern[j] == '!' {
				j++
			}
			if j < len(pattern) && pattern[j] == ']' {
				j++
			}
			for j < len(pattern) && pattern[j] != ']' {
				j++
			}
			if j >= len(pattern) {
				re.WriteString(`\[`)
				continue
			}
			set := strings.ReplaceAll(pattern[i+1:j], `\`, `\\`)
			if strings.HasPrefix(set, "!") {
				set = "^" + set[1:]
			} else if strings.HasPrefix(set, "^") {
				set = `\` + set
			}
			re.WriteString("[" + strings.ReplaceAll(set, "[", `\[`) + "]")
			i = j
		default:
			re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	r, err := regexp.Compile(re.String() + `$`)
	if err != nil {
		return nil
	}
	return r
}
