package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, &Options{Private: []byte("hello")}, &Options{Buffers: 4, Size: 1000, Private: []byte("welcome")})
		if string(in.Private()) != "hello" || string(out.Private()) != "welcome" {
			t.Errorf("private data %q and %q", in.Private(), out.Private())
		}
		if k, size := out.Out.Buffers(); k != 4 || size != 1000 || out.In != nil || in.Out != nil {
			t.Errorf("%d buffers of %d bytes", k, size)
		}
		ctx := context.Background()
		lengths := []int{0, 1, 7, 1000, 0, 999, 512, 3, 4, 5, 1000}
		go func() {
			for i, n := range lengths {
				if err := out.Out.Send(ctx, uint8(i), bytes.Repeat([]byte{byte(i)}, n)); err != nil {
					t.Error(err)
				}
			}
			if err := out.Out.Close(); err != nil {
				t.Error(err)
			}
			if err := out.Out.Send(ctx, 0, nil); !errors.Is(err, ErrClosed) {
				t.Errorf("Send after Close: %v", err)
			}
		}()
		for i, n := range lengths {
			m, err := in.In.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if m.Opcode != uint8(i) || !bytes.Equal(m.Bytes, bytes.Repeat([]byte{byte(i)}, n)) {
				t.Errorf("message %d: opcode %d, %d bytes", i, m.Opcode, len(m.Bytes))
			}
			if err := in.In.Release(m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := in.In.Recv(ctx); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

func TestTooLongAndOutOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 3, Size: 100})
		ctx := context.Background()
		if err := out.Out.Send(ctx, 0, make([]byte, 101)); !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
		var got [3]Buffer
		for i := range got {
			b, err := out.Out.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			b.Bytes[0] = byte(i)
			got[i] = b
		}
		if err := out.Out.Commit(got[1], 0, 1); !errors.Is(err, ErrOutOfTurn) {
			t.Error(err)
		}
		if err := out.Out.Commit(got[0], 0, 101); !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
		for i := range got {
			if err := out.Out.Commit(got[i], 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Out.Commit(got[0], 0, 1); !errors.Is(err, ErrOutOfTurn) || !strings.HasSuffix(err.Error(), ": this buffer was committed already; each that is acquired is committed once") {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := out.Out.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		var m [3]Message
		for i := range m {
			var err error
			if m[i], err = in.In.Recv(ctx); err != nil || m[i].Bytes[0] != byte(i) {
				t.Fatal(m[i], err)
			}
		}
		if err := in.In.Release(m[1]); !errors.Is(err, ErrOutOfTurn) {
			t.Error(err)
		}
		for i := range m {
			if err := in.In.Release(m[i]); err != nil {
				t.Error(err)
			}
		}
		if err := in.In.Release(m[2]); !errors.Is(err, ErrOutOfTurn) {
			t.Error(err)
		}
		if err := out.Out.Send(ctx, 0, []byte{1}); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, &Config{Memory: 1 << 20})
		for _, l := range []struct {
			port string
			o    Options
		}{{"in", Options{}}, {"big", Options{Buffers: 100, Size: 1 << 20}}, {"open", Options{}}, {"out", Options{Directions: Send}}} {
			p, err := b.Listen(l.port, &l.o)
			if err != nil {
				t.Fatal(err)
			}
			if p.Port() != l.port {
				t.Errorf("port %q is called %q", l.port, p.Port())
			}
			go func() {
				for {
					if _, err := p.Accept(context.Background()); err != nil {
						return
					}
				}
			}()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, c := range []struct {
			port string
			dir  Direction
			says string
		}{
			{"none", Send, `no port "none" here: check its name, and that this host listens on it by now`},
			{"in", Receive, `port "in" is not for that direction`},
			{"in", Both, "not for that direction"},
			{"out", Send, `port "out" is not for that direction: check Options.Directions at both ends`},
			{"big", Send, "open the host with more memory"},
			{"open", Send, "64 buffers of 65536 bytes take 4194560, more than half of the 1048576 bytes of memory here: dial with smaller Options.Buffers or Size, or listen with both set or in a host with more memory"},
		} {
			_, err := dial(ctx, a, 2, c.port, &Options{Directions: c.dir})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("dial %s: %v", c.port, err)
			}
		}
		if _, err := b.Listen("in", nil); err == nil {
			t.Error("two listen on one port")
		}
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestStreams checks that bytes arrive as they were written, however they are cut.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Latency: time.Millisecond, Loss: 0.05, Duplicate: 0.05, Reorder: 0.05})
		_, _, out, in := pair(t, n, &Options{Directions: Both}, &Options{Directions: Both, Buffers: 5, Size: 3000})
		data := make([]byte, 500_000)
		for i := range data {
			data[i] = byte(i * i >> 7)
		}
		go func() {
			if k, err := io.Copy(out.Out, bytes.NewReader(data)); k != int64(len(data)) || err != nil {
				t.Error(k, err)
			}
			if err := out.Out.Close(); err != nil {
				t.Error(err)
			}
		}()
		go func() { // back what came
			if _, err := io.Copy(in.Out, in.In); err != nil {
				t.Error(err)
			}
			if err := in.Out.Close(); err != nil {
				t.Error(err)
			}
		}()
		var got bytes.Buffer
		buf := make([]byte, 777)
		for {
			k, err := out.In.Read(buf)
			got.Write(buf[:k])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d bytes came back of %d", got.Len(), len(data))
		}
		for _, l := range []*Link{out, in} {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestManyLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		port, err := b.Listen("many", &Options{Buffers: 2, Size: 200})
		if err != nil {
			t.Fatal(err)
		}
		const links = 1000
		sum := make(chan int, links)
		go func() {
			for range links {
				in, err := port.Accept(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				go func() {
					total := 0
					for m, err := range in.In.Messages(context.Background()) {
						if err != nil {
							t.Error(err)
						}
						var i, k int
						fmt.Sscanf(string(m.Bytes), "%d %d", &i, &k)
						total += k
					}
					in.Close()
					sum <- total
				}()
			}
		}()
		var dialers sync.WaitGroup
		for i := range links {
			dialers.Go(func() {
				out, err := dial(context.Background(), a, 2, "many", nil)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range 10 {
					if err := out.Out.Send(context.Background(), 0, fmt.Appendf(nil, "%d %d", i, k)); err != nil {
						t.Error(err)
					}
				}
				if err := out.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		for range links {
			if got := <-sum; got != 45 {
				t.Errorf("sum %d", got)
			}
		}
		dialers.Wait()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestNumbers checks that each side knows the other one's number of the link.
func TestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, out, in := pair(t, newNet(t, 1), nil, nil)
		if out.Number() != a.Stats().Links[0].Number || in.Number() != b.Stats().Links[0].Number ||
			out.PeerNumber() != in.Number() || in.PeerNumber() != out.Number() {
			t.Errorf("%d with %d, %d with %d", out.Number(), out.PeerNumber(), in.Number(), in.PeerNumber())
		}
	})
}
