package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// StatusError is an answer with a status of 400 or above.
type StatusError struct {
	Method  string
	URL     string // without query
	Host    string
	Status  int
	Header  http.Header
	Message string // what the server said, one line
	OnHub   bool   // it came from the Hub itself, not from a content server
	Wait    time.Duration
	Skew    time.Duration // local clock minus the server's, zero if unknown
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		s += ": " + e.Message
	}
	if id := e.RequestID(); id != "" {
		s += " (request " + id + ")"
	}
	return s
}

// RequestID is what the server's operators need to find this request.
func (e *StatusError) RequestID() string {
	for _, k := range []string{"X-Request-Id", "X-Amzn-Trace-Id", "X-Amz-Cf-Id"} {
		if id := e.Header.Get(k); id != "" {
			return oneLine(id, 80)
		}
	}
	return ""
}

// NetError means that no whole answer came.
type NetError struct {
	Host string
	Err  error
}

func (e *NetError) Error() string { return e.Host + ": " + e.Err.Error() }
func (e *NetError) Unwrap() error { return e.Err }

// ProxyError means that the proxy, not the server, refused or failed.
type ProxyError struct {
	Host   string // the server that was asked for
	Status string // what the proxy said, or how it could not be reached
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy (HTTPS_PROXY, HTTP_PROXY) refuses to connect to %s: %s; add the host to NO_PROXY or put user:password into the proxy's address",
		e.Host, e.Status)
}

// Broken marks an error that comes from bytes damaged on their way: another try may help.
type Broken struct{ Err error }

func (e *Broken) Error() string { return e.Err.Error() }
func (e *Broken) Unwrap() error { return e.Err }

// foreignError means an answer that can't be a Hub's.
type foreignError struct {
	msg string
	err error // the cause, may be nil
}

func (e *foreignError) Error() string { return e.msg }

func (e *foreignError) Unwrap() []error {
	if e.err == nil {
		return []error{ErrNotHub}
	}
	return []error{ErrNotHub, e.err}
}

func (c *Client) netError(u *url.URL, err, cause error) error {
	var stall *StallError
	if errors.As(cause, &stall) {
		return stall
	}
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var proxy *ProxyError
	if errors.As(err, &proxy) {
		return &ProxyError{Host: u.Host, Status: proxy.Status}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return &ProxyError{Host: u.Host, Status: op.Err.Error()}
	}
	return &NetError{Host: u.Host, Err: err}
}

// statusError reads and closes the answer.
func (c *Client) statusError(r Request, u *url.URL, resp *http.Response) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusProxyAuthRequired {
		return &ProxyError{Host: u.Host, Status: resp.Status}
	}
	e := &StatusError{
		Method: resp.Request.Method, URL: Redact(u), Host: u.Host, Status: resp.StatusCode, Header: resp.Header,
		OnHub: Origin(u) == Origin(c.Endpoint),
	}
	now := c.Clock.Now()
	if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		e.Skew = now.Sub(t)
	}
	e.Wait = askedWait(resp.Header, now)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	e.Message = oneLine(resp.Header.Get("X-Error-Message"), 300)
	if e.Message == "" {
		var said struct {
			Error any `json:"error"`
		}
		if json.Unmarshal(body, &said) == nil && said.Error != nil {
			e.Message = oneLine(fmt.Sprint(said.Error), 300)
		}
	}
	for _, secret := range []string{c.Token, r.Bearer} {
		if secret != "" { // a server may repeat what it was sent
			e.Message = strings.ReplaceAll(e.Message, secret, "(token)")
		}
	}
	return e
}

// oneLine makes a server's words fit for a line on a terminal.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// askedWait returns how long the server asks to wait: Retry-After in seconds or as a date, or the t of a RateLimit
// header, which counts the seconds to the end of the window, and one more.
func askedWait(h http.Header, now time.Time) time.Duration {
	if s := strings.TrimSpace(h.Get("Retry-After")); s != "" {
		if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && n < 1e6 {
			return time.Duration(n * float64(time.Second))
		}
		if t, err := http.ParseTime(s); err == nil {
			return max(t.Sub(now), 0)
		}
	}
	for part := range strings.SplitSeq(h.Get("RateLimit"), ";") {
		if s, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok {
			if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 1e6 {
				return time.Duration(n+1) * time.Second
			}
		}
	}
	return 0
}

// maxWait is the longest wait that a server may ask for; beyond it the request fails.
const maxWait = 10 * time.Minute

// Transient reports whether another try may succeed.
func Transient(err error) bool {
	var status *StatusError
	var stall *StallError
	var broken *Broken
	var netErr *NetError
	switch {
	case errors.As(err, &status):
		switch status.Status {
		case 408, 429, 500, 502, 503, 504:
			return status.Wait <= maxWait
		}
		return false
	case errors.As(err, &stall), errors.As(err, &broken):
		return true
	case errors.As(err, &netErr):
		return !Permanent(netErr.Err)
	}
	return false
}

// Permanent reports whether a connection fails for a reason that doesn't pass: an unknown host, a certificate that is
// not trusted.
func Permanent(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &cert) || errors.As(err, &authority)
}

// backoff is the wait before the second and later tries, if the server doesn't ask for another.
var backoff = []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// Pause waits before try number try+1, after err. It returns err at once if another try is of no use.
func (c *Client) Pause(ctx context.Context, try int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	tries := c.Tries
	if tries == 0 {
		tries = 5
	}
	if !Transient(err) || try+1 >= tries {
		return err
	}
	wait := backoff[min(try, len(backoff)-1)]
	var status *StatusError
	if errors.As(err, &status) && status.Wait > 0 {
		wait = status.Wait
	}
	if c.Notify != nil {
		c.Notify(fmt.Sprintf("%v; next try in %v", err, wait.Round(time.Second/10)))
	}
	return c.Clock.Sleep(ctx, wait)
}

// Retry calls fn until it succeeds, fails for good, or has been tried often enough.
func (c *Client) Retry(ctx context.Context, fn func() error) error {
	for try := 0; ; try++ {
		err := fn()
		if err == nil {
			return nil
		}
		if err := c.Pause(ctx, try, err); err != nil {
			return err
		}
	}
}
