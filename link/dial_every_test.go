package link_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/link"
)

// TestDialOverWhatIsThere checks that a host at all addresses dials a peer that it hears already over
// that connection, whichever of this side's addresses the peer asked.
func TestDialOverWhatIsThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var hosts []*link.Host
	var ports []*link.Listener
	for _, s := range []string{"udp:127.0.0.1", "udp:[::]"} {
		h, err := link.Open(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		port, err := h.Listen("p", nil)
		if err != nil {
			t.Fatal(err)
		}
		hosts, ports = append(hosts, h), append(ports, port)
	}
	there := hosts[1].Endpoint()
	asked := fmt.Sprintf("ocpi-udp-rdma:127.0.0.2;%d;%d.%d.65535", there.LocalAddr().AddrPort().Port(), there.Size(), there.ID())
	for i, to := range []string{asked, hosts[0].URL()} {
		accepted := make(chan error, 1)
		go func() {
			_, err := ports[1-i].Accept(ctx)
			accepted <- err
		}()
		_, err := hosts[i].Dial(ctx, to, "p", nil)
		if err := errors.Join(err, <-accepted); err != nil {
			t.Fatalf("dial %s: %v", to, err)
		}
	}
	if n := len(there.Conns()); n != 1 {
		t.Errorf("%d connections to one host: %v", n, there.Conns())
	}
}
