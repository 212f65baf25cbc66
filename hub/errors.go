package hub

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gesso-go/gesso/hub/internal/wire"
)

// Kinds of failure, for errors.Is. The messages say what to do.
var (
	ErrNotFound     = errors.New("not found")
	ErrGated        = errors.New("gated repository")
	ErrUnauthorized = errors.New("not authorized")
	ErrRateLimited  = errors.New("rate limited")
	ErrOffline      = wire.ErrOffline
	ErrNotCached    = errors.New("not in the cache")
	ErrIncomplete   = errors.New("incomplete in the cache")
	ErrDiskFull     = errors.New("disk full")
	ErrChecksum     = errors.New("checksum mismatch")
	ErrChanged      = errors.New("changed on the Hub during the download")
	ErrNotHub       = wire.ErrNotHub
)

// ProxyError means that a proxy refuses or fails.
type ProxyError = wire.ProxyError

// kindError gives an error a kind without showing the kind's own text.
type kindError struct {
	kind error
	msg  string
	err  error // the cause, may be nil
}

func (e *kindError) Error() string { return e.msg }

func (e *kindError) Unwrap() []error {
	if e.err == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.err}
}

func errorf(kind, cause error, format string, args ...any) error {
	return &kindError{kind, fmt.Sprintf(format, args...), cause}
}

// explain turns an answer of the Hub about ref into an error that says what it means and what to do. Order and signs
// are those of huggingface_hub (utils/_http.py).
func (s *session) explain(ref Ref, err error) error {
	var status *wire.StatusError
	if !errors.As(err, &status) || !status.OnHub {
		return err
	}
	page := s.page(ref)
	code := status.Header.Get("X-Error-Code")
	switch {
	case code == "RevisionNotFound":
		return errorf(ErrNotFound, err, "%s has no revision %s; its branches and tags are listed at %s", ref.Repo, ref.revision(), page)
	case code == "EntryNotFound":
		return errorf(ErrNotFound, err, "%s has no file %s at revision %s", ref.Repo, ref.Path, ref.revision())
	case code == "GatedRepo" && s.Token == "":
		return errorf(ErrGated, err, "%s is gated: accept its licence at %s, make a token at %s/settings/tokens and set HF_TOKEN to it", ref.Repo, page, s.site)
	case code == "GatedRepo":
		return errorf(ErrGated, err, "%s is gated and the account of your token has no access yet: accept the licence at %s with that account, or set HF_TOKEN to another account's token (%s)", ref.Repo, page, status.Message)
	case strings.HasPrefix(status.Message, "Access to this resource is disabled"):
		return errorf(ErrNotFound, err, "%s is disabled on the Hub: %s", ref.Repo, status.Message)
	case status.Status == http.StatusUnauthorized && strings.HasPrefix(status.Message, "Invalid credentials"):
		return errorf(ErrUnauthorized, err, "the Hub doesn't accept your token for %s: set HF_TOKEN to a valid one from %s/settings/tokens, or unset it for public models", ref.Repo, s.site)
	case code == "RepoNotFound" || status.Status == http.StatusUnauthorized || status.Status == http.StatusNotFound:
		msg := fmt.Sprintf("there is no %s %s at %s", ref.Kind, ref.Repo, s.site)
		if s.Token == "" {
			msg += ", or it is private and you gave no token (set HF_TOKEN)"
		} else {
			msg += ", or your token has no access to it"
		}
		if near := s.store.nearest(ref); near != "" {
			msg += "; did you mean " + near + ", which is in the cache?"
		}
		return errorf(ErrNotFound, err, "%s", msg)
	case status.Status == http.StatusForbidden:
		return errorf(ErrUnauthorized, err, "access to %s is forbidden: %s; check the rights of your token at %s/settings/tokens", ref.Repo, reason(status), s.site)
	case status.Status == http.StatusTooManyRequests:
		return errorf(ErrRateLimited, err, "the Hub limits your requests: %s; wait, or set HF_TOKEN for a higher limit", rateLimit(status))
	}
	return err
}

func reason(e *wire.StatusError) string {
	if e.Message != "" {
		return e.Message
	}
	return "no reason given"
}

func rateLimit(e *wire.StatusError) string {
	if e.Wait > 0 {
		return fmt.Sprintf("it asks to wait %v", e.Wait)
	}
	return reason(e)
}

// page is the repository's web page.
func (s *session) page(ref Ref) string {
	if ref.Kind == Model {
		return s.site + "/" + ref.Repo
	}
	return s.site + "/" + ref.Kind.plural() + "/" + ref.Repo
}

// refused reports whether the Hub refuses the repository as a whole: to this token, or to everybody. A revision that
// isn't there is not meant.
func refused(err error) bool {
	var status *wire.StatusError
	if !errors.As(err, &status) || !status.OnHub {
		return false
	}
	switch code := status.Header.Get("X-Error-Code"); status.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return code != "RevisionNotFound" && code != "EntryNotFound"
	}
	return false
}

// unreachable reports whether err means that the Hub can't be asked now, so that the cache may answer in its place.
// Proxy errors don't count: a proxy that refuses is to be put right.
func unreachable(err error) bool {
	var proxy *wire.ProxyError
	if errors.As(err, &proxy) {
		return false
	}
	var status *wire.StatusError
	if errors.As(err, &status) {
		return status.Status >= 500 || status.Status == http.StatusTooManyRequests || status.Status == http.StatusRequestTimeout
	}
	var stall *wire.StallError
	var network *wire.NetError
	return errors.Is(err, ErrOffline) || errors.Is(err, ErrNotHub) || errors.As(err, &stall) || errors.As(err, &network)
}
