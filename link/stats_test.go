package link

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestStats follows the buffers of a link from hand to hand.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, nil, &Options{Buffers: 8, Size: 100})
		ctx := context.Background()
		name := func(id uint32) dgrdma.PeerName {
			return dgrdma.PeerName{ID: dgrdma.EndpointID(id), Addr: simnet.Addr(id)}
		}
		expect := func(when string, wantOut ProducerStats, wantIn ConsumerStats) {
			t.Helper()
			synctest.Wait()
			time.Sleep(time.Second) // acknowledgements that wait to be piggybacked
			synctest.Wait()
			wantOut.Buffers, wantOut.Size, wantIn.Buffers, wantIn.Size = 8, 100, 8, 100
			here, there := out.Stats(), in.Stats()
			if here.In != nil || there.Out != nil || *here.Out != wantOut {
				t.Errorf("%s: the producer is %+v, want %+v", when, *here.Out, wantOut)
			}
			if *there.In != wantIn {
				t.Errorf("%s: the consumer is %+v, want %+v", when, *there.In, wantIn)
			}
			if s := a.Stats(); len(s.Links) != 1 || *s.Links[0].Out != wantOut || s.Sent != wantOut.Traffic || s.Received != (Traffic{}) {
				t.Errorf("%s: the sending host is %+v", when, s)
			}
			if s := b.Stats(); len(s.Links) != 1 || *s.Links[0].In != wantIn || s.Received != wantIn.Traffic || s.Sent != (Traffic{}) || s.Made != 1 {
				t.Errorf("%s: the receiving host is %+v", when, s)
			}
		}
		expect("at first", ProducerStats{Free: 8}, ConsumerStats{Free: 8})
		if s := out.Stats(); s.Port != "port" || s.Peer != name(2) || s.Dialing || s.Closing || s.Err != nil || s.Age <= 0 || s.Number != out.number {
			t.Errorf("%+v", s)
		}

		held, err := out.Out.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		expect("acquired", ProducerStats{Free: 7, Acquired: 1}, ConsumerStats{Free: 8})
		out.Out.Commit(held, 0, 50)
		for range 2 {
			if err := out.Out.Send(ctx, 0, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		expect("sent", ProducerStats{Traffic: Traffic{3, 250}, Free: 5, Filled: 3}, ConsumerStats{Free: 5, Waiting: 3})

		var got []Message
		for range 3 {
			m, err := in.In.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
		expect("received", ProducerStats{Traffic: Traffic{3, 250}, Free: 5, Filled: 3}, ConsumerStats{Traffic: Traffic{3, 0}, Free: 5, Held: 3})
		in.In.Release(got[0])
		expect("one released, which makes three quarters free", ProducerStats{Traffic: Traffic{3, 250}, Free: 6, Filled: 2},
			ConsumerStats{Traffic: Traffic{3, 50}, Free: 6, Held: 2})
		in.In.Release(got[1])
		expect("two released", ProducerStats{Traffic: Traffic{3, 250}, Free: 6, Filled: 2},
			ConsumerStats{Traffic: Traffic{3, 150}, Free: 7, Held: 1, Owed: 1})
		in.In.Release(got[2])

		// What a link moved stays in the sum when it is over.
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		if s := out.Stats(); !s.Closing || !errors.Is(s.Err, ErrClosed) {
			t.Errorf("closed by the application: %+v", s)
		}
		if s := in.Stats().In; !s.EndOfFile {
			t.Errorf("end of file has come, and is not received yet: %+v", s)
		}
		if _, err := in.In.Recv(ctx); err != io.EOF {
			t.Error(err)
		}
		in.Close()
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if s := a.Stats(); s.Sent != (Traffic{4, 250}) || len(s.Links) != 0 || s.Made != 1 {
			t.Errorf("the sending host, afterwards: %+v", s)
		}
		if s := b.Stats(); s.Received != (Traffic{4, 250}) || s.Sent != (Traffic{}) || len(s.Links) != 0 {
			t.Errorf("the receiving host, afterwards: %+v", s)
		}
		nothingLeft(t, a, b)
	})
}

// TestStatsOfPortsAndDials checks that what is not a link yet is listed too.
func TestStatsOfPortsAndDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		for _, name := range []string{"second", "first"} {
			if _, err := b.Listen(name, nil); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := dial(ctx, a, 2, "second", nil)
			ended <- err
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		if s := b.Stats(); !slices.Equal(s.Ports, []PortStats{{"first", 0}, {"second", 1}}) || len(s.Links) != 0 {
			t.Errorf("the listening host: %+v", s)
		}
		if s := a.Stats(); len(s.Links) != 1 || !s.Links[0].Dialing || s.Links[0].Port != "second" || *s.Links[0].Out != (ProducerStats{}) {
			t.Errorf("the dialing host: %+v", s)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("no link was accepted")
		}
	})
}

// TestStatsDuringTraffic is for the race detector, and for sums: they never shrink, and no buffer is
// in two places.
func TestStatsDuringTraffic(t *testing.T) {
	n := newNet(t, 1)
	a, b := n.host(1, nil), n.host(2, nil)
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		var sent, received Traffic
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, h := range []*Host{a, b} {
				s := h.Stats()
				if h == a && (s.Sent.Bytes < sent.Bytes || s.Sent.Messages < sent.Messages) || h == b && (s.Received.Bytes < received.Bytes || s.Received.Messages < received.Messages) {
					t.Errorf("sums shrink: %+v after %v and %v", s, sent, received)
				}
				for _, l := range s.Links {
					if o := l.Out; o != nil && (o.Free < 0 || o.Acquired < 0 || o.Filled < 0) {
						t.Errorf("%+v", *o)
					}
					if i := l.In; i != nil && (i.Free < 0 || i.Waiting < 0 || i.Held < 0 || i.Free+i.Waiting+i.Held != i.Buffers) {
						t.Errorf("%+v", *i)
					}
				}
				if h == a {
					sent = s.Sent
				} else {
					received = s.Received
				}
			}
		}
	})
	const links, messages, size = 5, 2000, 100
	for range links {
		out, in := join(t, a, b, "port", nil, &Options{Buffers: 16, Size: size})
		var both sync.WaitGroup
		both.Go(func() {
			for range messages {
				if err := out.Out.Send(context.Background(), 0, make([]byte, size)); err != nil {
					t.Error(err)
				}
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			for _, err := range in.In.Messages(context.Background()) {
				if err != nil {
					t.Error(err)
				}
			}
			in.Close()
		})
		both.Wait()
	}
	close(stop)
	all.Wait()
	want := Traffic{links * (messages + 1), links * messages * size}
	if s, r := a.Stats().Sent, b.Stats().Received; s != want || r != want {
		t.Errorf("%+v were sent and %+v received, want %+v", s, r, want)
	}
}

// TestStatsOfAFullLink checks that a producer whose buffers are all filled has none free.
func TestStatsOfAFullLink(t *testing.T) {
	aloneWith(t, 2, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
		for range 2 {
			if err := l.Out.Send(soon(t), 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Stats().Out; got.Free != 0 || got.Filled != 2 {
			t.Errorf("%+v", *got)
		}
	})
}

// TestStatsOfManyLinks checks that links are listed by number.
func TestStatsOfManyLinks(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		const links = 12
		for i := range uint32(links) {
			s.dial(i+1, "port", toListener, half{Credit: 1 << 15}, half{})
		}
		got := h.Stats().Links
		if len(got) != links || !slices.IsSortedFunc(got, func(a, b LinkStats) int { return int(int32(a.Number - b.Number)) }) {
			t.Errorf("%+v", got)
		}
	})
}

// TestStatsOfPlainLinks checks that a link with a peer of another kind waits for no answer. What was
// released is owed until it is known where that is told; then each buffer is told of.
func TestStatsOfPlainLinks(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		l, d, err := h.Offer(h.ep.Conns()[0], 4, &Options{Buffers: 4, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint32(4) {
			s.frame(s.word(d.Flags+4*i, uint32(PackFlag(8, 0, false))))
			m, err := l.In.Recv(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			l.In.Release(m)
		}
		if got := l.Stats(); got.Dialing || got.In.Owed != 4 || got.In.Free != 4 {
			t.Errorf("before it is connected: %+v, %+v", got, *got.In)
		}
		s.wait(20 * time.Millisecond)
		if s.count != 0 {
			t.Errorf("%d words before it is known where they go: %v", s.count, s.words)
		}
		if err := l.Connect(EmptyFlags{Addr: 1 << 14, Pitch: 8}); err != nil {
			t.Fatal(err)
		}
		s.wait(20 * time.Millisecond)
		if got := l.Stats().In; got.Owed != 0 || got.Traffic != (Traffic{4, 32}) {
			t.Errorf("when it is connected: %+v", *got)
		}
		for i := range uint32(4) {
			if s.words[1<<14+8*i] != 1 || s.count != 4 {
				t.Errorf("%d words: %v", s.count, s.words)
			}
		}
	})
}
