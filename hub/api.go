package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gesso-go/gesso/hub/internal/wire"
	"github.com/gesso-go/gesso/hub/xet"
)

// escapePath percent-encodes a path in a repository and keeps its slashes.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// escapeAll percent-encodes slashes too, as revisions and bucket paths need.
func escapeAll(p string) string { return strings.ReplaceAll(escapePath(p), "/", "%2F") }

func (s *session) api(ref Ref) string {
	return s.Endpoint + "/api/" + ref.Kind.plural() + "/" + ref.Repo
}

// fileURL is where the Hub serves the file, or sends to where it is.
func (s *session) fileURL(ref Ref, commit, path string) string {
	switch ref.Kind {
	case Bucket:
		return s.Endpoint + "/buckets/" + ref.Repo + "/resolve/" + escapeAll(path)
	case Model:
		return s.Endpoint + "/" + ref.Repo + "/resolve/" + escapeAll(commit) + "/" + escapePath(path)
	}
	return s.Endpoint + "/" + ref.Kind.plural() + "/" + ref.Repo + "/resolve/" + escapeAll(commit) + "/" + escapePath(path)
}

// repoInfo is what the Hub says about a repository at a revision.
type repoInfo struct {
	SHA      string   `json:"sha"`
	Tags     []string `json:"tags"`
	Siblings []struct {
		Name string `json:"rfilename"`
	} `json:"siblings"`
	CardData json.RawMessage `json:"cardData"`
}

// info asks which commit the revision is now. Quick means one try only.
func (s *session) info(ctx context.Context, ref Ref, quick bool) (repoInfo, error) {
	w := *s.meta
	if quick {
		w.Tries = 1
	}
	var info repoInfo
	_, err := w.JSON(ctx, wire.Request{URL: s.api(ref) + "/revision/" + escapeAll(ref.revision())}, &info)
	if err != nil {
		return info, s.explain(ref, err)
	}
	if !commitName.MatchString(info.SHA) {
		return info, errorf(ErrNotHub, nil, "%s doesn't answer like a Hub (no commit for %s): a proxy or a login page may be in between", s.site, ref)
	}
	return info, nil
}

// tree lists all files of the commit, or of a bucket, page by page.
func (s *session) tree(ctx context.Context, ref Ref, commit string) ([]Entry, error) {
	next := s.api(ref) + "/tree"
	if ref.Kind != Bucket {
		next += "/" + commit
	}
	next += "?recursive=true&expand=false"
	var entries []Entry
	seen := map[string]bool{}
	for next != "" {
		if seen[next] {
			return nil, fmt.Errorf("listing of %s: the pages go in a circle", ref)
		}
		seen[next] = true
		var data json.RawMessage
		header, err := s.meta.JSON(ctx, wire.Request{URL: next}, &data)
		if err != nil {
			return nil, s.explain(ref, err)
		}
		page, err := parseTreePage(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		entries = append(entries, page...)
		next = ""
		if link := links(header)["next"]; link != "" {
			base, _ := url.Parse(s.Endpoint + "/")
			u, err := base.Parse(link)
			if err != nil {
				return nil, fmt.Errorf("listing of %s: bad link to the next page", ref)
			}
			next = u.String()
		}
	}
	sortEntries(entries)
	for i := 1; i < len(entries); i++ {
		if entries[i].Path == entries[i-1].Path {
			return nil, fmt.Errorf("listing of %s: %s is there twice", ref, entries[i].Path)
		}
	}
	return entries, nil
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
}

// links reads the Link headers: rel to address.
func links(h http.Header) map[string]string {
	out := map[string]string{}
	for _, header := range h.Values("Link") {
		for header != "" {
			open := strings.IndexByte(header, '<')
			end := strings.IndexByte(header, '>')
			if open < 0 || end < open {
				break
			}
			target := header[open+1 : end]
			params, rest, _ := strings.Cut(header[end+1:], "<")
			for p := range strings.SplitSeq(params, ";") {
				if v, ok := strings.CutPrefix(strings.TrimSpace(p), "rel="); ok {
					out[strings.Trim(strings.TrimRight(v, ", "), `"`)] = target
				}
			}
			if rest == "" {
				break
			}
			header = "<" + rest
		}
	}
	return out
}

// metadata asks for one file's identity. It returns the commit that the Hub names, and the route for Xet tokens.
func (s *session) metadata(ctx context.Context, ref Ref, commit, path string) (e Entry, at, route string, err error) {
	var resp *wire.Response
	var tag string
	err = s.meta.Retry(ctx, func() error {
		var err error
		resp, err = s.meta.Do(ctx, wire.Request{Method: http.MethodHead, URL: s.fileURL(ref, commit, path), HubOnly: true})
		if err != nil {
			return err
		}
		resp.Body.Close()
		tag = cleanETag(cmp.Or(resp.Header.Get("X-Linked-Etag"), resp.Header.Get("ETag")))
		if !sha256Name.MatchString(tag) && !commitName.MatchString(tag) {
			// Without it nothing tells right content from wrong.
			return &wire.Broken{Err: errorf(ErrNotHub, nil, "%s names no hash for %s (ETag %.60q)", s.site, path, tag)}
		}
		return nil
	})
	if err != nil {
		var status *wire.StatusError
		if errors.As(err, &status) && status.Header.Get("X-Error-Code") == "EntryNotFound" {
			if c := status.Header.Get("X-Repo-Commit"); commitName.MatchString(c) {
				s.store.setAbsent(ref, c, path)
			}
		}
		ref.Path = path
		return e, "", "", s.explain(ref, err)
	}
	h := resp.Header
	e = Entry{Path: path, Size: -1}
	if sha256Name.MatchString(tag) {
		e.SHA256 = tag
	} else {
		e.Git = tag
	}
	size := h.Get("X-Linked-Size")
	if size == "" && resp.StatusCode < 300 {
		size = h.Get("Content-Length")
	}
	if n, err := strconv.ParseInt(size, 10, 64); err == nil && n >= 0 {
		e.Size = n
	}
	at = h.Get("X-Repo-Commit")
	if ref.Kind != Bucket && !commitName.MatchString(at) {
		return e, "", "", errorf(ErrNotHub, nil, "%s doesn't answer like a Hub for %s (no X-Repo-Commit): a proxy or a login page may be in between", s.site, path)
	}
	if hash := h.Get("X-Xet-Hash"); hash != "" {
		route = cmp.Or(links(h)["xet-auth"], h.Get("X-Xet-Refresh-Route"))
		if route != "" && e.Size >= 0 {
			e.Xet = hash
		}
	}
	return e, at, s.ownRoute(route), e.check()
}

// cleanETag strips the sign of a weak validator and the quotes.
func cleanETag(s string) string { return strings.Trim(strings.TrimLeft(s, "W/"), `"`) }

// ownRoute rewrites an address on the public Hub to the endpoint in use: mirrors pass on the Hub's own headers.
func (s *session) ownRoute(route string) string {
	if rest, ok := strings.CutPrefix(route, DefaultEndpoint+"/"); ok {
		return s.Endpoint + "/" + rest
	}
	return route
}

// xetToken asks the Hub for a token that reads the repository's files from the store.
func (s *session) xetToken(ctx context.Context, ref Ref, commit, route string) (xet.Token, error) {
	if route == "" {
		route = s.api(ref) + "/xet-read-token"
		if ref.Kind != Bucket {
			route += "/" + escapeAll(commit)
		}
	}
	var answer struct {
		Access  string `json:"accessToken"`
		Expires int64  `json:"exp"`
		CAS     string `json:"casUrl"`
	}
	header, err := s.meta.JSON(ctx, wire.Request{URL: route}, &answer)
	if err != nil {
		return xet.Token{}, s.explain(ref, err)
	}
	if answer.Access == "" || answer.CAS == "" {
		return xet.Token{}, fmt.Errorf("the Hub's answer has no access token or store address")
	}
	// Count the lifetime from the server's time, so that a wrong local clock doesn't matter.
	now := s.Clock.Now()
	server := now
	if t, err := http.ParseTime(header.Get("Date")); err == nil {
		server = t
	}
	return xet.Token{CAS: answer.CAS, Access: answer.Access, Expires: now.Add(time.Unix(answer.Expires, 0).Sub(server))}, nil
}
