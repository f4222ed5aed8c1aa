package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// openLoopback captures on loopback, where quiet is called once what was sent is read.
func openLoopback(ctx context.Context, t *testing.T, quiet func() error) *Live {
	t.Helper()
	live, err := OpenLive(ctx, "lo", Filter{EtherType: frame.EtherType}, quiet)
	if err != nil && os.Geteuid() != 0 {
		t.Skip(err) // it needs CAP_NET_RAW
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { live.Close() })
	return live
}

// TestLive: what is sent over loopback is captured once, and the capture ends with what
// quiet says, or with the context.
func TestLive(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	enough := errors.New("enough")
	stop := false
	live := openLoopback(ctx, t, func() error {
		if stop {
			return enough
		}
		return nil
	})
	to, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	payload := bytes.Repeat([]byte("payload of this test "), 10)
	if _, err := to.WriteTo(payload, to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for {
		rec, err := live.Next()
		if err != nil {
			if err != enough {
				t.Errorf("it ends with %v, want what quiet said", err)
			}
			break
		}
		if !bytes.Contains(rec.Data, payload) {
			continue // others use the interface as well
		}
		seen++
		stop = true
		c := content{data: rec.Data, length: rec.Length}
		if c.unwrap(rec.LinkType, toy{}) != foundUDP || c.src.UDP.String() != to.LocalAddr().String() || !bytes.Equal(c.data, payload) || rec.Time.IsZero() {
			t.Errorf("captured %+v", rec)
		}
	}
	if seen != 1 {
		t.Errorf("captured %d times", seen)
	}
	stop = false
	cancel()
	for err = nil; err == nil; {
		_, err = live.Next()
	}
	if err != io.EOF {
		t.Errorf("after the context it ends with %v", err)
	}
}
