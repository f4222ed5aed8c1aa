package lossy

import (
	"bytes"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// pair returns two ends of a network, of which the second loses.
func pair(t *testing.T, chance float64, seed uint64) (transport.Conn, *Conn) {
	t.Helper()
	network := simnet.New(1)
	a := network.Attach(simnet.Addr(1), simnet.Config{})
	b := New(network.Attach(simnet.Addr(2), simnet.Config{}), chance, seed)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// kept sends numbers, and returns those that came.
func kept(t *testing.T, chance float64, seed uint64, n int) (came []int) {
	t.Helper()
	a, b := pair(t, chance, seed)
	to := b.LocalAddr()
	in := make([]transport.Datagram, 8)
	for sent := 0; sent < n; {
		for range 5 { // several come at once
			buf := make([]byte, a.Caps().Headroom+16)
			buf[len(buf)-2], buf[len(buf)-1] = byte(sent>>8), byte(sent)
			if _, err := a.Send([]transport.Outgoing{{To: &to, Buf: buf}}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		for {
			got, err := b.Recv(in, time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range in[:got] {
				came = append(came, int(d.Data[len(d.Data)-2])<<8|int(d.Data[len(d.Data)-1]))
			}
			if _, of := b.Lost(); of == uint64(sent) {
				break
			}
		}
	}
	if lost, of := b.Lost(); of != uint64(n) || int(lost) != n-len(came) {
		t.Errorf("%d of %d were lost, and %d of %d came", lost, of, len(came), n)
	}
	return came
}

// TestLoses: as many as were asked for, of all equally, the same with the same seed, and in order.
func TestLoses(t *testing.T) {
	const n = 5000
	came := kept(t, 0.2, 7, n)
	if lost := n - len(came); lost < 850 || lost > 1150 { // five standard deviations
		t.Errorf("%d of %d were lost", lost, n)
	}
	for i := 1; i < len(came); i++ {
		if came[i] <= came[i-1] {
			t.Fatalf("%d came behind %d", came[i], came[i-1])
		}
	}
	if again := kept(t, 0.2, 7, n); len(again) != len(came) || again[len(again)-1] != came[len(came)-1] {
		t.Errorf("%d came, and %d with the same seed", len(came), len(again))
	}
	other := kept(t, 0.2, 8, n)
	same := len(other) == len(came)
	for i := 0; same && i < len(came); i++ {
		same = came[i] == other[i]
	}
	if same {
		t.Error("another seed loses the same")
	}
	if all := kept(t, 0, 7, 100); len(all) != 100 {
		t.Errorf("%d of 100 came where nothing is lost", len(all))
	}
}

// TestWaitsOn: who waits without end is given something, or an error; never nothing, which it would take for
// the end of its patience.
func TestWaitsOn(t *testing.T) {
	a, b := pair(t, 0.9, 3)
	to := b.LocalAddr()
	in := make([]transport.Datagram, 4)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			n, err := b.Recv(in, transport.Forever)
			if err != nil {
				return
			}
			if n == 0 {
				t.Error("nothing came, and it waited no longer")
			}
		}
	}()
	for range 300 {
		if _, err := a.Send([]transport.Outgoing{{To: &to, Buf: bytes.Repeat([]byte{1}, a.Caps().Headroom+8)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := b.Lost(); of < 300; _, of = b.Lost() {
		time.Sleep(time.Millisecond)
	}
	b.Close()
	<-done
}

// TestDamages: as many as were asked for are changed, most of them, all arrive as long as they were, and the
// sender's own bytes stay as they are.
func TestDamages(t *testing.T) {
	network := simnet.New(1)
	a := network.Attach(simnet.Addr(1), simnet.Config{})
	b := NewDamaging(network.Attach(simnet.Addr(2), simnet.Config{}), 0.2, 7)
	defer a.Close()
	defer b.Close()
	want := make([]byte, 200)
	for i := range want {
		want[i] = byte(i + 1)
	}
	const n = 3000
	buf := append(make([]byte, a.Caps().Headroom), want...)
	to := b.LocalAddr()
	in := make([]transport.Datagram, 1)
	changed := 0
	for range n {
		if _, err := a.Send([]transport.Outgoing{{To: &to, Buf: buf}}); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Recv(in, transport.Forever); got != 1 || err != nil || len(in[0].Data) != len(want) {
			t.Fatalf("%d came, of %d bytes: %v", got, len(in[0].Data), err)
		}
		if !bytes.Equal(in[0].Data, want) {
			changed++
		}
	}
	damaged := int(b.Damaged())
	if damaged < 490 || damaged > 710 || changed > damaged || changed < damaged*9/10 { // five standard deviations
		t.Errorf("%d of %d were damaged, and %d differ", damaged, n, changed)
	}
	if !bytes.Equal(buf[a.Caps().Headroom:], want) {
		t.Error("what was sent was changed")
	}
}
