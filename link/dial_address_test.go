package link

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestDialByAddress checks that the address of a host is enough to dial it. Where no host is, that is
// no answer. A host with another id than the string says that it has another one.
func TestDialByAddress(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open := func(s string) *Host {
		h, err := Open(s, &Config{Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}
	there, here, hasty := open("udp:127.0.0.1"), open("udp?giveup=2s"), open("udp?giveup=50ms")
	l, err := there.Listen("port", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range 2 {
			l.Accept(ctx)
		}
	}()
	at := there.Endpoint().LocalAddr()
	var first *Link
	for range 2 {
		x, err := here.Dial(ctx, fmt.Sprintf("udp:%v", at), "port", &Options{Buffers: 2, Size: 64})
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && x.Peer() != first.Peer() {
			t.Error("a second connection to the same host")
		}
		first = x
	}
	other := uint16(there.Endpoint().ID()) ^ 1
	began := time.Now()
	_, err = here.Dial(ctx, fmt.Sprintf("ocpi-udp-rdma:%v;%d;4096.%d.65535", at.AddrPort().Addr(), at.AddrPort().Port(), other), "port", nil)
	var is *dgrdma.IDError
	if !errors.Is(err, dgrdma.ErrWrongID) || !errors.As(err, &is) || is.Is != there.Endpoint().ID() || errors.Is(err, ErrNoAnswer) {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	there.Close()
	_, err = hasty.Dial(ctx, fmt.Sprintf("udp:%v", at), "port", nil)
	if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, dgrdma.ErrPeerDown) || ctx.Err() != nil {
		t.Error(err)
	}
}
