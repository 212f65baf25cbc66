package hub

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Kind is the kind of a repository.
type Kind string

const (
	Model   Kind = "model"
	Dataset Kind = "dataset"
	Space   Kind = "space"
	Kernel  Kind = "kernel"
	Bucket  Kind = "bucket"
)

func (k Kind) plural() string { return string(k) + "s" }

var kindOf = map[string]Kind{"models": Model, "datasets": Dataset, "spaces": Space, "kernels": Kernel, "buckets": Bucket}

// Ref names a repository, a revision of it, and perhaps a file or folder in it.
type Ref struct {
	Kind     Kind
	Repo     string // org/name; old models have a name only
	Revision string // branch, tag or commit; empty means main
	Path     string // empty: the whole repository
}

// String prints the reference in the form that ParseRef reads.
func (r Ref) String() string {
	s := r.Repo
	if r.Kind == Model && r.Path == "" {
		if r.Revision != "" {
			s += "@" + r.Revision
		}
		return s
	}
	if r.Revision != "" {
		rev := r.Revision
		if !serverRef.MatchString(rev) { // else its slashes would begin the path
			rev = strings.NewReplacer("%", "%25", "/", "%2F").Replace(rev)
		}
		s += "@" + rev
	}
	if r.Kind != Model {
		s = r.Kind.plural() + "/" + s
	}
	if r.Path != "" {
		s += "/" + r.Path
	}
	return "hf://" + s
}

func (r Ref) revision() string {
	if r.Revision == "" {
		return "main"
	}
	return r.Revision
}

// At returns the reference at a revision that is given apart from it, as by a flag. Empty changes nothing.
func (r Ref) At(revision string) (Ref, error) {
	switch {
	case revision == "":
		return r, nil
	case r.Kind == Bucket:
		return r, fmt.Errorf("%s: buckets have no revisions", r)
	case r.Revision != "" && r.Revision != revision:
		return r, fmt.Errorf("%s names the revision %s, and the option says %s", r, r.Revision, revision)
	}
	if err := safePath(revision); err != nil {
		return r, fmt.Errorf("revision: %w", err)
	}
	r.Revision = revision
	return r, nil
}

var (
	repoName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
	commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)
	serverRef  = regexp.MustCompile(`^refs/(pr|convert)/[^/]+$`)
)

// ParseRef reads a reference to a repository:
//
//	org/name   org/name@revision   hf://org/name@revision/path   hf://datasets/org/name
//	hf://buckets/org/bucket/prefix   https://huggingface.co/org/name/blob/main/file (pasted from a browser)
//
// The endpoint tells which web addresses are the Hub's own besides huggingface.co.
func ParseRef(s, endpoint string) (Ref, error) {
	fail := func(why string) (Ref, error) {
		return Ref{}, fmt.Errorf("%.200q is not a model reference: %s (expected org/name, org/name@revision, hf://org/name@revision/path, an address on the Hub, or a local folder)", s, why)
	}
	var parts []string
	web := false
	switch {
	case strings.HasPrefix(s, "hf://"):
		parts = strings.Split(strings.TrimRight(strings.TrimPrefix(s, "hf://"), "/"), "/")
	case strings.HasPrefix(s, "http://"), strings.HasPrefix(s, "https://"):
		u, err := url.Parse(s)
		if err != nil {
			return fail("bad address")
		}
		own, err := url.Parse(endpoint)
		switch host := strings.ToLower(u.Host); {
		case host == "huggingface.co", host == "www.huggingface.co", host == "hf.co":
		case err == nil && own.Host != "" && host == strings.ToLower(own.Host):
		default:
			return fail("the address is not on the Hub")
		}
		// Split before decoding: %2F belongs to a revision such as refs%2Fpr%2F1.
		for _, p := range strings.Split(strings.Trim(u.EscapedPath(), "/"), "/") {
			p, err := url.PathUnescape(p)
			if err != nil {
				return fail("bad address")
			}
			parts = append(parts, p)
		}
		web = true
	case strings.Contains(s, "://"):
		return fail("unknown scheme")
	default:
		parts = strings.Split(s, "/")
		if n := len(parts); n > 2 && !strings.Contains(strings.Join(parts[:2], ""), "@") {
			return fail("too many parts, and no such folder")
		}
	}

	ref := Ref{Kind: Model}
	if k, ok := kindOf[parts[0]]; ok && (web || strings.HasPrefix(s, "hf://")) {
		ref.Kind = k
		parts = parts[1:]
	}
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		if len(parts) == 1 && !strings.Contains(s, "://") {
			return fail("the organisation is missing, and there is no such folder")
		}
		return fail("the name is missing")
	}
	name, rev, hasRev := strings.Cut(parts[1], "@")
	ref.Repo = parts[0] + "/" + name
	rest := parts[2:]
	if !repoName.MatchString(parts[0]) || !repoName.MatchString(name) {
		return fail("bad organisation or name")
	}
	if web {
		if hasRev {
			return fail("bad name")
		}
		if ref.Kind == Bucket {
			if len(rest) > 0 && (rest[0] == "resolve" || rest[0] == "tree" || rest[0] == "blob") {
				rest = rest[1:]
			}
		} else if len(rest) > 0 {
			switch rest[0] {
			case "blob", "resolve", "tree", "raw":
				if len(rest) < 2 {
					return fail("the address has no revision")
				}
				rev, hasRev = rest[1], true
				rest = rest[2:]
				if rev == "refs" && len(rest) >= 2 { // refs/pr/1, unescaped in the address bar
					rev, rest = "refs/"+rest[0]+"/"+rest[1], rest[2:]
				}
			default:
				rest = nil // discussions, commits and other pages about the repository
			}
		}
	} else if rev == "refs" && len(rest) >= 2 && (rest[0] == "pr" || rest[0] == "convert") {
		rev, rest = "refs/"+rest[0]+"/"+rest[1], rest[2:]
	} else if strings.Contains(s, "://") {
		rev = strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%").Replace(rev)
	} else if hasRev && len(rest) > 0 {
		// Without a scheme all that follows the @ is the revision, which may hold slashes.
		rev, rest = strings.Join(append([]string{rev}, rest...), "/"), nil
	}
	switch {
	case hasRev && ref.Kind == Bucket:
		return fail("buckets have no revisions")
	case hasRev && rev == "":
		return fail("the revision after @ is empty")
	}
	ref.Revision, ref.Path = rev, strings.Join(rest, "/")
	if ref.Revision != "" && safePath(ref.Revision) != nil {
		return fail("bad revision")
	}
	if ref.Path != "" && safePath(ref.Path) != nil {
		return fail("bad path")
	}
	return ref, nil
}

// safePath refuses a path that could lead out of the folder it is meant for, on any system: absolute, with a drive or a
// backslash, or with "..". Control characters would reach the terminal.
func safePath(p string) error {
	bad := p == "" || strings.Contains(p, "\\") || strings.ContainsFunc(p, unicode.IsControl) || len(p) > 1024
	for part := range strings.SplitSeq(p, "/") {
		bad = bad || part == "" || part == "." || part == ".." || strings.HasSuffix(part, ":") ||
			len(part) > 1 && part[1] == ':'
	}
	if bad {
		return fmt.Errorf("unsafe path %.100q", p)
	}
	return nil
}
