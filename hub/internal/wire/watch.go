package wire

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"
)

// trickle is the least number of bytes a second that counts as a living connection. It is far below any real line; a
// connection under it is given up and the transfer goes on in a new one.
const trickle = 100

// A watch cancels a request when, over an idle time that was spent waiting, nothing or a mere trickle came. The time
// that the reader takes to handle the bytes doesn't count.
type watch struct {
	mu     sync.Mutex
	idle   time.Duration
	left   time.Duration
	got    int
	began  time.Time
	timer  *time.Timer
	cancel context.CancelCauseFunc
	host   string
}

func newWatch(idle time.Duration, cancel context.CancelCauseFunc, host string) *watch {
	return &watch{idle: idle, left: idle, cancel: cancel, host: host}
}

func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.left, func() {
			w.cancel(&StallError{Host: w.host, Idle: w.idle})
		})
		return
	}
	w.timer.Reset(w.left)
}

// stop ends a wait that brought n bytes.
func (w *watch) stop(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.left = max(w.left-time.Since(w.began), time.Millisecond)
	w.got += n
	if n == 0 && w.got == 0 || float64(w.got) >= trickle*w.idle.Seconds() {
		w.left, w.got = w.idle, 0
	}
}

// StallError means that a server said nothing, or next to nothing, for too long.
type StallError struct {
	Host string
	Idle time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("%s sent nothing, or less than %d bytes a second, for %v (HF_HUB_DOWNLOAD_TIMEOUT sets the limit)",
		e.Host, trickle, e.Idle)
}

// watchedBody turns the errors of a body into this package's, and watches it for stalls.
type watchedBody struct {
	io.ReadCloser
	client *Client
	watch  *watch
	ctx    context.Context
	cancel context.CancelCauseFunc
	url    *url.URL
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.start()
	n, err := b.ReadCloser.Read(p)
	b.watch.stop(n)
	if err != nil && err != io.EOF {
		err = b.client.netError(b.url, err, context.Cause(b.ctx))
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
