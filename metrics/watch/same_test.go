package watch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestPeersOfOneName: a peer that asked two addresses of an endpoint is two, which differ in that
// alone: each has series of its own.
func TestPeersOfOneName(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	b, err := dgrdma.Open("udp:[::]", &dgrdma.Config{ID: 5, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	a, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	names := map[string]bool{}
	for _, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		to, err := a.Dial(fmt.Sprintf("ocpi-udp-rdma:%s;%d;64.5.9", ip, b.LocalAddr().AddrPort().Port()))
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Write(ctx, &dgrdma.Transaction{Completion: dgrdma.Word(0, 1)}); err != nil {
			t.Fatal(err)
		}
		if v, _ := Endpoint(b).Look(); len(v.Peers) == 1 && v.Peers[0].Name != fmt.Sprintf("7@%v", a.LocalAddr()) {
			t.Errorf("alone it is called %s", v.Peers[0].Name)
		}
		names[fmt.Sprintf("7@%v at %s", a.LocalAddr(), ip)] = true
	}
	c := New()
	c.Add(Endpoint(b))
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
	v, _ := Endpoint(b).Look()
	for _, p := range v.Peers {
		if !names[p.Name] {
			t.Errorf("%s is none of %v", p.Name, names)
		}
		delete(names, p.Name)
	}
	if len(names) != 0 {
		t.Errorf("missing: %v", names)
	}
}
