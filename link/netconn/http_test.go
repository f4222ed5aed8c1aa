package netconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// serveHTTP has a server at a port that sends back what it is sent, and returns a client that knows it
// as "server".
func serveHTTP(t *testing.T, from, to *link.Host, secure bool) (*http.Client, *http.Transport, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	}))
	s.Listener.Close()
	s.Listener = listen(t, to, "http", nil)
	d := &Dialer{Host: from, Lookup: func(context.Context, string) (string, error) { return to.URL(), nil }}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, "server:http")
	}}
	url := "http://server"
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
		transport.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
		transport.ForceAttemptHTTP2 = true
		url = "https://server"
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, transport, url
}

// TestShortConnections checks that many requests, each by a connection of its own, leave nothing, and
// that the same holds for requests that share connections, by HTTP/1.1 and, by TLS, HTTP/2.
func TestShortConnections(t *testing.T) {
	for _, c := range []struct {
		name           string
		secure, single bool
	}{{"one each", false, true}, {"kept", false, false}, {"TLS one each", true, true}, {"HTTP/2", true, false}} {
		t.Run(c.name, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			x, y := open(t, nil), open(t, nil)
			client, transport, url := serveHTTP(t, x, y, c.secure)
			if transport.DisableKeepAlives = c.single; c.single {
				transport.ForceAttemptHTTP2 = false
			}
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					for k := range 10 {
						want := fixture.RandomBytes(uint64(i*16+k), 1<<(4+k))
						answer, err := client.Post(url, "application/octet-stream", bytes.NewReader(want))
						if err != nil {
							t.Error(err)
							return
						}
						got, err := io.ReadAll(answer.Body)
						answer.Body.Close()
						if err != nil || !bytes.Equal(got, want) {
							t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
						}
						if two := c.secure && !c.single; two != (answer.ProtoMajor == 2) {
							t.Errorf("by %s", answer.Proto)
						}
					}
				})
			}
			all.Wait()
			transport.CloseIdleConnections()
			nothingLeft(t, x, y)
		})
	}
}
