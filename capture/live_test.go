package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// TestLiveCountsDrops checks that what the kernel had no room for is counted from the beginning of the capture on, however often the
// count is asked for (N4).
func TestLiveCountsDrops(t *testing.T) {
	const port = 39_471
	live, err := OpenLive(t.Context(), "lo", Filter{Ports: []uint16{port}}, nil)
	if err != nil && os.Geteuid() != 0 {
		t.Skip(err) // it needs CAP_NET_RAW
	}
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	c, err := net.Dial("udp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dropped := func() (n int) { // until there is no more room, as nothing reads
		b := make([]byte, 60_000)
		before := live.Dropped()
		for i := 0; i < 20*liveBuffer/len(b) && n <= before; i++ {
			c.Write(b) // every second one fails, as nothing listens there
			if i%100 == 99 {
				n = live.Dropped()
			}
		}
		return n
	}
	first := dropped()
	if again := live.Dropped(); first == 0 || again != first {
		t.Errorf("%d dropped, and asked again %d", first, again)
	}
	if more := dropped(); more <= first {
		t.Errorf("%d dropped, and later %d", first, more)
	}
}
