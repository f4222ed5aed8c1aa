package mpa

import (
	"bytes"
	"fmt"
	"net"
	"testing"
)

// runDry has a connection find that there is nothing to read.
func runDry(t *testing.T, c *Conn) {
	t.Helper()
	if err := c.raw.Control(func(fd uintptr) {
		if c.readRaw(fd) {
			t.Error("there was something to read")
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// A server of many connections finds each of them with one message, and then with nothing: one call takes it. Where more
// comes at a time than the buffer holds, payload goes on to be read into its place.
func TestCallsOfABurst(t *testing.T) {
	const long, short = inputSize + 32<<10, 64 << 10
	for _, size := range []int{short, minDirect, longPayload} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			a, z := unixPair(t)
			if err := a.(*net.UnixConn).SetWriteBuffer(long); err != nil {
				t.Fatal(err)
			}
			ca, cz := open(t, a, z, &Options{NoCRC: true}, &Options{NoCRC: true})
			src := &stock{data: pattern(long, 1), size: long}
			sink := &place{memory: pattern(long, 2)}
			exchange := func(n int) (calls int) {
				src.at, src.size, src.left, sink.left = 0, n, 1, 1
				if err := drain(ca, src); err != nil {
					t.Fatal(err)
				}
				for ; sink.left > 0; calls++ {
					if err := cz.Receive(sink); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(sink.memory[:n], src.data[:n]) {
					t.Fatalf("a Write of %d bytes arrived as another", n)
				}
				clear(sink.memory)
				return calls
			}
			exchange(long)
			runDry(t, cz)
			if cz.direct == 0 {
				t.Error("after more than the buffer holds no long payload is expected")
			}
			exchange(size)
			runDry(t, cz)
			for range 3 {
				if calls := exchange(size); calls != 1 {
					t.Errorf("a Write of %d bytes that had arrived whole took %d calls", size, calls)
				}
				runDry(t, cz)
			}
		})
	}
}
