package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

func openHost(t *testing.T) *link.Host {
	t.Helper()
	h, err := link.Open("udp:127.0.0.1", &link.Config{Memory: 2 * Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// pair returns both sides of a stream.
func pair(t *testing.T, size int64, sends, receives *Options) (out, in *Stream) {
	t.Helper()
	a, b := openHost(t), openHost(t)
	port, err := Listen(b, receives)
	if err != nil {
		t.Fatal(err)
	}
	dialed, accepted := both(
		func() (err error) { out, err = Dial(t.Context(), a, b.URL(), size, sends); return err },
		func() (err error) { in, err = port.Accept(t.Context()); return err })
	if dialed != nil || accepted != nil {
		t.Fatal(dialed, accepted)
	}
	return out, in
}

// both runs two sides and returns how they ended.
func both(out, in func() error) (sent, received error) {
	ended := make(chan error)
	go func() { ended <- in() }()
	sent = out()
	return sent, <-ended
}

// TestSend checks that streams of sizes around those of buffers arrive in files, whole, and that both
// sides know it, and how much it was.
func TestSend(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for i, n := range []int{0, 1, bufferSize - 1, bufferSize, bufferSize + 1, 3*bufferSize + 7, (buffers + 2) * bufferSize} {
		content, dir := fixture.RandomBytes(uint64(i), n), t.TempDir()
		opt := [2]Options{}
		opt[i%2].Checksum = i%3 > 0
		out, in := pair(t, int64(n), &opt[0], &opt[1])
		if in.Size() != int64(n) || in.Duplex() {
			t.Errorf("%d bytes were announced, want %d", in.Size(), n)
		}
		file, err := CreateFile(filepath.Join(dir, "f"), false)
		if err != nil {
			t.Fatal(err)
		}
		sent, received := both(func() error {
			err := out.Send(t.Context(), bytes.NewReader(content))
			fixture.WantFiles(t, dir, map[string][]byte{"f": content}) // when the sender knows
			return err
		}, func() error { return in.Receive(t.Context(), file) })
		if sent != nil || received != nil {
			t.Fatalf("%d bytes: %v, %v", n, sent, received)
		}
		var sum []byte
		if i%3 > 0 {
			whole := sha256.Sum256(content)
			sum = whole[:]
		}
		a, b := out.Result(), in.Result()
		if a.Sent != int64(n) || b.Received != int64(n) || a.Received+b.Sent != 0 || !a.Confirmed || !b.Confirmed ||
			!bytes.Equal(a.SentSum, sum) || !bytes.Equal(b.ReceivedSum, sum) {
			t.Errorf("%d bytes: %+v, %+v", n, a, b)
		}
		if err := out.Send(t.Context(), bytes.NewReader(content)); !errors.Is(err, ErrUsed) {
			t.Errorf("sent twice: %v", err)
		}
	}
}

// TestExchange moves more than fits into buffers, in both directions at once.
func TestExchange(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	duplex := &Options{Duplex: true, Checksum: true}
	out, in := pair(t, Unknown, duplex, duplex)
	there, back := fixture.RandomBytes(1, (buffers+1)*bufferSize), fixture.RandomBytes(2, (buffers+1)*bufferSize+1)
	var gotThere, gotBack bytes.Buffer
	sent, received := both(
		func() error { return out.Exchange(t.Context(), bytes.NewReader(there), Writer(&gotBack)) },
		func() error { return in.Exchange(t.Context(), bytes.NewReader(back), Writer(&gotThere)) })
	if sent != nil || received != nil || !bytes.Equal(gotThere.Bytes(), there) || !bytes.Equal(gotBack.Bytes(), back) {
		t.Errorf("%v, %v; %d and %d bytes", sent, received, gotThere.Len(), gotBack.Len())
	}
}

// TestExchangeWithASlowReader checks that a reader that waits in Read does not hold up the receipt of
// what comes in the other direction.
func TestExchangeWithASlowReader(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	duplex := &Options{Duplex: true}
	out, in := pair(t, Unknown, duplex, duplex)
	slow, end := io.Pipe()
	x := in.Link() // in place of a stream, to see the receipt
	gets := func(opcode uint8, want []byte) {
		m, err := x.In.Recv(t.Context())
		if err != nil || m.Opcode != opcode || !bytes.Equal(m.Bytes, want) {
			t.Errorf("%v of kind %d, %v; want %q of kind %d", m.Bytes, m.Opcode, err, want, opcode)
		}
		x.In.Release(m)
	}
	go func() {
		x.Out.Send(t.Context(), opData, []byte("answer"))
		x.Out.Send(t.Context(), opEnd, tallyOf(6))
		gets(opReceipt, tallyOf(6))
		io.WriteString(end, "question")
		end.Close()
		gets(opData, []byte("question"))
		gets(opEnd, tallyOf(8))
		x.Out.Send(t.Context(), opReceipt, tallyOf(8))
		x.Close()
	}()
	var answer bytes.Buffer
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := out.Exchange(bounded, slow, Writer(&answer)); err != nil || answer.String() != "answer" {
		t.Errorf("%v: %q", err, answer.String())
	}
}

// TestDirections checks that a side that wants something else than the peer, or than its own Options
// say, moves nothing, and that the peer is told.
func TestDirections(t *testing.T) {
	nothing := func() io.Reader { return bytes.NewReader(nil) }
	for _, c := range []struct {
		name            string
		sends, receives bool // duplex
		move            func(ctx context.Context, out, in *Stream) (wrong, other error)
	}{
		{"the receiver does not send", true, false, func(ctx context.Context, out, in *Stream) (error, error) {
			other, wrong := both(func() error { return out.Exchange(ctx, nothing(), Writer(io.Discard)) }, func() error { return in.Receive(ctx, Writer(io.Discard)) })
			return wrong, other
		}},
		{"the sender does not receive", false, true, func(ctx context.Context, out, in *Stream) (error, error) {
			other, wrong := both(func() error { return out.Send(ctx, nothing()) }, func() error { return in.Exchange(ctx, nothing(), Writer(io.Discard)) })
			return wrong, other
		}},
		{"the dialer receives", false, false, func(ctx context.Context, out, in *Stream) (error, error) {
			return both(func() error { return out.Receive(ctx, Writer(io.Discard)) }, func() error { return in.Receive(ctx, Writer(io.Discard)) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			out, in := pair(t, Unknown, &Options{Duplex: c.sends}, &Options{Duplex: c.receives})
			wrong, other := c.move(t.Context(), out, in)
			var told *link.AbortError
			if !errors.Is(wrong, ErrDirections) || !errors.As(other, &told) || told.Reason != ErrDirections.Error() {
				t.Errorf("%v, %v", wrong, other)
			}
		})
	}
}

// TestStreamsFollowEachOther checks that a program that has sent a stream may send another, though the
// receiver has not ended the first one yet: a host that was opened by default has room for both.
func TestStreamsFollowEachOther(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	a := openHost(t)
	b, err := link.Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	port, err := Listen(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	data := [2]string{"the first", "the second"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a stream that is refused is not accepted
	defer cancel()
	var out, in [2]*Stream
	for i, d := range data {
		dialed, accepted := both(
			func() (err error) {
				out[i], err = Dial(ctx, a, b.URL(), int64(len(d)), nil)
				if err != nil {
					cancel()
				}
				return err
			},
			func() (err error) { in[i], err = port.Accept(ctx); return err })
		if dialed != nil || accepted != nil {
			t.Fatalf("stream %d: %v, %v", i, dialed, accepted)
		}
	}
	for i, d := range data {
		var got bytes.Buffer
		sent, received := both(
			func() error { return out[i].Send(t.Context(), strings.NewReader(d)) },
			func() error { return in[i].Receive(t.Context(), Writer(&got)) })
		if sent != nil || received != nil || got.String() != d {
			t.Errorf("stream %d: %v, %v, %q", i, sent, received, &got)
		}
	}
}

// TestAccept checks that a peer that speaks no streams is refused and told why, and does not keep
// others from being served. A busy listener says so.
func TestAccept(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	a, b := openHost(t), openHost(t)
	refused := make(chan error, 9)
	port, err := Listen(b, &Options{Port: "files", Refused: func(_ dgrdma.PeerName, why error) { refused <- why }})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	accepted := make(chan *Stream)
	go func() {
		s, _ := port.Accept(t.Context())
		accepted <- s
	}()
	for _, c := range []struct {
		said  string
		other bool
		tells string
	}{
		{"", false, "the peer speaks no streams: it said nothing"},
		{"hello", true, "the peer speaks version 104 of streams, this is version 1"},
		{"\x01\xff\x00\x00\x00\x00\x00\x00\x00\x00", false, "the peer speaks no streams: it said 01 ff 00 00 00 00 00 00 00 00"},
		{"\x01\x00", false, "the peer speaks no streams: it said 01 00"},
	} {
		_, err := a.Dial(t.Context(), b.URL(), "files", &link.Options{Directions: link.Both, Buffers: 4, Size: 256, Private: []byte(c.said)})
		var hello *HelloError
		if !errors.Is(err, link.ErrRefused) || !strings.HasSuffix(err.Error(), ": "+c.tells) {
			t.Errorf("%q was told %v", c.said, err)
		}
		if err := <-refused; !errors.As(err, &hello) || string(hello.Said) != c.said || hello.OtherVersion() != c.other {
			t.Errorf("%q: %v", c.said, err)
		}
	}
	out, err := Dial(t.Context(), a, b.URL(), Unknown, &Options{Port: "files"})
	if err != nil {
		t.Fatal(err)
	}
	in := <-accepted
	port.Refuse("busy")
	if _, err := Dial(t.Context(), a, b.URL(), Unknown, &Options{Port: "files"}); !errors.Is(err, link.ErrRefused) {
		t.Error(err)
	}
	var got bytes.Buffer
	sent, received := both(func() error { return out.Send(t.Context(), bytes.NewReader([]byte("x"))) }, func() error { return in.Receive(t.Context(), Writer(&got)) })
	if sent != nil || received != nil || got.String() != "x" {
		t.Errorf("%v, %v: %q", sent, received, got.String())
	}
}
