package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// TransportOptions describes the machine's network.
type TransportOptions struct {
	Proxy   func(*url.URL) (*url.URL, error)
	CAFiles []string // PEM files with certificates to trust beside the system's
	CADirs  []string
	Connect time.Duration // default 10 s
	PerHost int           // idle connections to keep, default 32
}

// NewTransport returns a transport that speaks HTTP/1.1: parallel ranges want their own connections.
func NewTransport(o TransportOptions) (*http.Transport, error) {
	connect := o.Connect
	if connect == 0 {
		connect = 10 * time.Second
	}
	perHost := o.PerHost
	if perHost == 0 {
		perHost = 32
	}
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connect,
		MaxIdleConnsPerHost: perHost,
		IdleConnTimeout:     60 * time.Second,
		ReadBufferSize:      32 << 10,
		DisableCompression:  true,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return &ProxyError{Status: resp.Status}
			}
			return nil
		},
	}
	if o.Proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return o.Proxy(r.URL) }
	}
	if len(o.CAFiles) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		for _, path := range o.CAFiles {
			pem, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("certificates of SSL_CERT_FILE or REQUESTS_CA_BUNDLE: %w", err)
			}
			if !pool.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("certificates of SSL_CERT_FILE or REQUESTS_CA_BUNDLE: %s holds no PEM certificate", path)
			}
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return t, nil
}
