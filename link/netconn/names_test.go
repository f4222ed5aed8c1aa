package netconn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestDialHostName checks that the endpoint string of an address may name its host, which is looked up
// within the context.
func TestDialHostName(t *testing.T) {
	fixture.Names(t, map[string][]netip.Addr{
		"both.example": {netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}, "silent.example": nil,
	})
	h := open(t, nil)
	l := listen(t, open(t, nil), "port", nil)
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	named := func(host string) string { return strings.Replace(l.Addr().String(), "127.0.0.1", host, 1) }
	d := &Dialer{Host: h}
	c, err := d.Dial(Network, named("both.example"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_, err = d.Dial(Network, named("unknown.example"))
	if of := (*net.DNSError)(nil); !errors.As(err, &of) || of.Name != "unknown.example" || !of.IsNotFound {
		t.Error(err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, stopped)
	defer cancel()
	if _, err := d.DialContext(ctx, Network, named("silent.example")); !errors.Is(err, stopped) {
		t.Error(err)
	}
}
