// Package wire sends the Hub client's HTTP requests: it decides who gets the token, follows redirects, gives up on
// silent or trickling connections, and says which failures are worth another try.
package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/gesso-go/gesso/internal/jsonwords"
)

// Clock is the time, and waiting. Tests replace it.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the context's error before.
	Sleep(ctx context.Context, d time.Duration) error
}

// Client sends requests. All fields but Transport, Clock and Endpoint may be zero.
type Client struct {
	Transport http.RoundTripper
	Clock     Clock
	Endpoint  *url.URL // the only origin that Token is sent to
	Token     string
	UserAgent string
	Idle      time.Duration // the longest wait for the next bytes; default 10 s
	Tries     int           // for one request, default 5
	Offline   bool          // every request fails with ErrOffline
	// Notify, if set, is told in one line about every wait before another try.
	Notify func(message string)
}

// ErrOffline is the error of every request while working offline.
var ErrOffline = errors.New("offline mode is on (HF_HUB_OFFLINE=1)")

// ErrNotHub is the kind of errors for answers that can't be a Hub's.
var ErrNotHub = errors.New("not a Hub")

// errToken doesn't say where in the token the character is, nor which.
var errToken = errors.New("the token (HF_TOKEN, or the token file) holds a control character, which no token does: set it anew")

// Request is one request. The zero Method is GET.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Bearer string // for the URL's own origin, in place of the client's token
	Body   []byte
	// HubOnly stops at a redirect that leaves the Hub, and returns that answer.
	HubOnly bool
}

// Response is an answer with a status below 400.
type Response struct {
	*http.Response
	// Hub holds the headers of the last answer that came from the Hub itself: where a redirect leads to a content
	// server, that's the redirect.
	Hub http.Header
}

const maxRedirects = 10

// Do sends the request once, follows redirects, and returns the answer, or a *StatusError for a status of 400 or above.
// The caller closes the body.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if c.Offline {
		return nil, ErrOffline
	}
	if strings.ContainsFunc(c.Token, unicode.IsControl) {
		return nil, errToken
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("bad address %q: expected http:// or https://", redactString(r.URL))
	}
	bearerOrigin := Origin(u)
	var hub http.Header
	for range maxRedirects + 1 {
		resp, err := c.send(ctx, r, u, bearerOrigin)
		if err != nil {
			return nil, err
		}
		onHub := Origin(u) == Origin(c.Endpoint)
		if onHub {
			hub = resp.Header
		}
		location := resp.Header.Get("Location")
		if resp.StatusCode < 300 || resp.StatusCode >= 400 || location == "" {
			if resp.StatusCode >= 400 {
				return nil, c.statusError(r, u, resp)
			}
			return &Response{resp, hub}, nil
		}
		next, err := u.Parse(location)
		if err != nil || next.Host == "" || next.Scheme != "http" && next.Scheme != "https" {
			resp.Body.Close()
			return nil, &foreignError{fmt.Sprintf("%s redirects to a bad address", Redact(u)), err}
		}
		if r.HubOnly && Origin(next) != Origin(u) && Origin(next) != Origin(c.Endpoint) {
			return &Response{resp, hub}, nil
		}
		io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
		resp.Body.Close()
		u = next
	}
	return nil, &foreignError{fmt.Sprintf("%s: more than %d redirects", redactString(r.URL), maxRedirects), nil}
}

// send makes one round trip to u.
func (c *Client) send(ctx context.Context, r Request, u *url.URL, bearerOrigin string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := newWatch(c.idle(), cancel, u.Host)
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("bad address %q", Redact(u))
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	// Compressed answers have no usable length and can't be resumed.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", c.UserAgent)
	switch {
	case r.Bearer != "":
		if Origin(u) == bearerOrigin {
			req.Header.Set("Authorization", "Bearer "+r.Bearer)
		}
	case c.Token != "" && Origin(u) == Origin(c.Endpoint):
		req.Header.Set("Authorization", "Bearer "+c.Token)
	case u.User != nil:
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
	}
	w.start()
	resp, err := c.Transport.RoundTrip(req)
	w.stop(0)
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		return nil, c.netError(u, err, cause)
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, client: c, watch: w, ctx: ctx, cancel: cancel, url: u}
	return resp, nil
}

func (c *Client) idle() time.Duration {
	if c.Idle > 0 {
		return c.Idle
	}
	return 10 * time.Second
}

// JSON fetches the URL, with tries, and decodes the answer into v. It returns the answer's headers. An answer that ends
// early is asked for again; any other that doesn't fit v is no Hub's.
func (c *Client) JSON(ctx context.Context, r Request, v any) (header http.Header, err error) {
	err = c.Retry(ctx, func() error {
		var data []byte
		if data, header, err = c.once(ctx, r); err != nil {
			return err
		}
		if err = json.Unmarshal(data, v); err == nil {
			return nil
		}
		err = jsonwords.Explain(data, err)
		if cutShort(data) {
			return &Broken{&foreignError{fmt.Sprintf("the answer of %s ends early: %v", redactString(r.URL), err), err}}
		}
		return &foreignError{fmt.Sprintf("%s answered something else than JSON of the Hub's form (%v): a proxy or a login page may be in between",
			redactString(r.URL), err), err}
	})
	return header, err
}

// cutShort reports whether data is a beginning of JSON, as is left where a connection without a length breaks.
func cutShort(data []byte) bool {
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(data)).Decode(&v)
	return err == io.EOF || err == io.ErrUnexpectedEOF
}

// maxAnswer bounds what is read into memory as one answer.
const maxAnswer = 64 << 20

// Bytes fetches the URL, with tries, and returns its whole body.
func (c *Client) Bytes(ctx context.Context, r Request) (data []byte, header http.Header, err error) {
	err = c.Retry(ctx, func() error {
		data, header, err = c.once(ctx, r)
		return err
	})
	return data, header, err
}

func (c *Client) once(ctx context.Context, r Request) ([]byte, http.Header, error) {
	resp, err := c.Do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return nil, resp.Header, &foreignError{fmt.Sprintf("%s answered %s without saying where to", redactString(r.URL), resp.Status), nil}
	}
	body, err := Plain(resp.Response)
	if err != nil {
		return nil, resp.Header, err
	}
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("%s answered more than %d MiB", redactString(r.URL), maxAnswer>>20)
	}
	return data, resp.Header, err
}

// Plain returns the body without the compression that a server may apply although it was asked not to.
func Plain(resp *http.Response) (io.Reader, error) {
	switch e := strings.ToLower(resp.Header.Get("Content-Encoding")); e {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, &Broken{fmt.Errorf("gzip answer: %w", err)}
		}
		return z, nil
	default:
		return nil, fmt.Errorf("answer has the unknown encoding %.40q", e)
	}
}

// Origin returns scheme, host and port of u, which is what a token belongs to.
func Origin(u *url.URL) string {
	if u == nil {
		return ""
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Redact prints u without what may be secret: the query, where signatures are, and user names.
func Redact(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

func redactString(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		s, _, _ = strings.Cut(s, "?")
		if _, after, ok := strings.Cut(s, "@"); ok {
			return after
		}
		return s
	}
	return Redact(u)
}
