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

// bursts is a connection to which Writes go, each of which is there whole before the first call that receives it.
type bursts struct {
	from, to *Conn
	src      *stock
	sink     *place
}

// openBursts opens one for Writes of up to so many octets.
func openBursts(t *testing.T, long int) *bursts {
	t.Helper()
	a, z := unixPair(t)
	if err := a.(*net.UnixConn).SetWriteBuffer(long); err != nil {
		t.Fatal(err)
	}
	b := &bursts{src: &stock{data: pattern(long, 1), size: long}, sink: &place{memory: pattern(long, 2)}}
	b.from, b.to = open(t, a, z, &Options{NoCRC: true}, &Options{NoCRC: true})
	return b
}

// exchange has a Write of n octets received, and returns how many calls that took.
func (b *bursts) exchange(t *testing.T, n int) (calls int) {
	t.Helper()
	b.src.at, b.src.size, b.src.left, b.sink.left = 0, n, 1, 1
	if err := drain(b.from, b.src); err != nil {
		t.Fatal(err)
	}
	for ; b.sink.left > 0; calls++ {
		if err := b.to.Receive(b.sink); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(b.sink.memory[:n], b.src.data[:n]) {
		t.Fatalf("a Write of %d bytes arrived as another", n)
	}
	clear(b.sink.memory)
	return calls
}

// A receiver that lags finds several long frames: one call takes the header, and the next one the first payload into its place, and
// all that the buffer holds beyond it.
func TestCallsOfALaggingReceiver(t *testing.T) {
	const long = 3 * longPayload
	b := openBursts(t, long)
	b.exchange(t, long)
	runDry(t, b.to)
	for range 3 {
		if calls := b.exchange(t, long); calls != 2 {
			t.Errorf("three long frames that had arrived took %d calls", calls)
		}
	}
}

// A server of many connections finds each of them with one message, and then with nothing: one call takes it. Where more
// comes at a time than the buffer holds, payload goes on to be read into its place.
func TestCallsOfABurst(t *testing.T) {
	const long, short = inputSize + 32<<10, 64 << 10
	for _, size := range []int{short, minDirect, longPayload} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := openBursts(t, long)
			b.exchange(t, long)
			runDry(t, b.to)
			if b.to.direct == 0 {
				t.Error("after more than the buffer holds no long payload is expected")
			}
			b.exchange(t, size)
			runDry(t, b.to)
			for range 3 {
				if calls := b.exchange(t, size); calls != 1 {
					t.Errorf("a Write of %d bytes that had arrived whole took %d calls", size, calls)
				}
				runDry(t, b.to)
			}
		})
	}
}
