package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// wrapping discards all data, and says why.
type wrapping struct{ *Region }

func (wrapping) Admit(frame.EndpointID, *frame.Message) ([]byte, error) {
	return nil, fmt.Errorf("nobody wants it: %w", Swallow(errors.New("no room")))
}

// TestWhatAFrameCounts checks that each frame counts for what became of it and for nothing else.
func TestWhatAFrameCounts(t *testing.T) {
	word := func(txn uint32, n uint16) frame.Message {
		m := bare(txn, 1, 1)
		m.Addr, m.Len = 64, n
		return m
	}
	acking := func(b []byte, start frame.Seq) []byte {
		frame.PutAck(b, start, 1)
		return b
	}
	refused := func(why Reason) (c Counters) {
		c.Refused[why] = 1
		return c
	}
	for _, x := range []struct {
		name   string
		prof   Profile
		memory Memory
		frame  func(f *feed, c *Conn) []byte
		want   Counters // but for frames and bytes received, and what is sent
	}{
		{
			"data", Native(), nil,
			func(f *feed, _ *Conn) []byte { return f.encode(1, 1, word(life, 8), word(life+1, 4)) },
			Counters{MessagesPlaced: 2, DataPlaced: 12, Completions: 2},
		},
		{
			"data that is swallowed", Native(), wrapping{new(Region)},
			func(f *feed, _ *Conn) []byte { return f.encode(1, 1, word(life, 8)) },
			Counters{Swallowed: 1},
		},
		{
			"an id too far ahead", Native(), nil,
			func(f *feed, _ *Conn) []byte {
				f.give(f.encode(1, 1, bare(life, 1, 1)))
				return f.encode(1, 1+20000, bare(life+1, 1, 1))
			},
			refused(RefusedForeign),
		},
		{
			"what came before", Native(), nil,
			func(f *feed, _ *Conn) []byte {
				f.give(f.encode(1, 1, bare(life, 1, 1)))
				return f.encode(1, 1, bare(life, 1, 1))
			},
			Counters{Duplicates: 1},
		},
		{
			"an acknowledgement of what was not sent", Native(), nil,
			func(f *feed, c *Conn) []byte {
				b := f.encode(1, 1, bare(1, 1, 1))
				frame.PutSessionAck(b, c.nextID.Load())
				return b
			},
			refused(RefusedAckOfUnsent),
		},
		{
			"an acknowledgement of what was not sent", OpenCPI(false), nil,
			func(_ *feed, c *Conn) []byte {
				c.mu.Lock()
				defer c.mu.Unlock()
				return acking(encode(1, 1, bare(1, 1, 1)), frame.Seq(c.tx.unacked.Next()))
			},
			func() Counters {
				c := refused(RefusedAckOfUnsent)
				c.Completions = 1
				return c
			}(),
		},
		{
			"transactions that take too much", Native(), nil,
			func(f *feed, _ *Conn) []byte {
				return f.encode(1, 1, times(settings.LeastOpenMemory/reassembly.Size+1, func(i int) frame.Message { return bare(life+uint32(i), 2, 1) })...)
			},
			refused(RefusedOpenMemory),
		},
		{
			"transactions that take all there is", Native(), nil,
			func(f *feed, _ *Conn) []byte {
				return f.encode(1, 1, times(settings.LeastOpenMemory/reassembly.Size, func(i int) frame.Message { return bare(life+uint32(i), 2, 1) })...)
			},
			Counters{},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFeed(t, Config{Memory: x.memory, OpenMemory: settings.LeastOpenMemory})
			c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &x.prof})
			if err != nil {
				t.Fatal(err)
			}
			if x.prof.Session {
				f.introduce(1, life)
			}
			b := x.frame(f, c)
			before := c.Stats().Counters
			f.give(b)
			got := c.Stats().Counters
			d, old := reflect.ValueOf(&got).Elem(), reflect.ValueOf(before)
			for i := range d.NumField() {
				if f := d.Field(i); f.Kind() == reflect.Uint64 {
					f.SetUint(f.Uint() - old.Field(i).Uint())
				}
			}
			for why := range got.Refused {
				got.Refused[why] -= before.Refused[why]
			}
			want := x.want
			want.FramesReceived, want.BytesReceived = 1, uint64(len(b))
			want.FramesSent, want.BytesSent, want.AcksAlone = got.FramesSent, got.BytesSent, got.AcksAlone
			if got != want {
				t.Errorf("counted %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestRefusedReasons checks that the names of the reasons for a refusal are those of what was
// refused, and no others.
func TestRefusedReasons(t *testing.T) {
	var c Counters
	if m := c.RefusedReasons(); m != nil {
		t.Errorf("nothing was refused, told are %v", m)
	}
	c.Refused[RefusedStale], c.Refused[RefusedBounds] = 3, 1
	if m, want := c.RefusedReasons(), map[string]uint64{RefusedStale.String(): 3, RefusedBounds.String(): 1}; !reflect.DeepEqual(m, want) {
		t.Errorf("told are %v, want %v", m, want)
	}
}

// TestFramesOfAPeerThatIsDown checks that what a peer without sessions still sends after it timed out is refused, counted, and not
// acknowledged.
func TestFramesOfAPeerThatIsDown(t *testing.T) {
	for _, prof := range []Profile{OpenCPI(false), FPGA()} {
		t.Run(prof.Name, func(t *testing.T) {
			withFakePeer(t, Config{GiveUp: time.Second}, prof, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				if err := c.Write(context.Background(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Fatal(err)
				}
				s.recv(time.Second)
				s.send(2, data(life, 1, 1, 64, pattern(1, 16)))
				s.send(3)
				sent := s.recv(time.Second)
				st := c.Stats()
				if len(sent) != 0 || st.RefusedBy(RefusedDown) != 2 || st.Completions != 0 || e.memory.(*Region).Bytes()[64] != 0 {
					t.Errorf("%d frames sent, refused %v, %d completions", len(sent), st.RefusedReasons(), st.Completions)
				}
			})
		})
	}
}

// TestNothingForNoMemory checks that an endpoint without memory takes what asks for none.
func TestNothingForNoMemory(t *testing.T) {
	f := newFeed(t, Config{Memory: noMemory{}})
	c := f.native()
	nothing := bare(life, 1, 1)
	nothing.CompletionAddr, nothing.CompletionValue = frame.NoCompletion, frame.NoCompletion
	f.give(f.encode(1, 1, nothing))
	f.give(f.encode(1, 2, bare(life+1, 1, 1)))
	if st := c.Stats(); st.Completions != 1 || st.RefusedBy(RefusedBounds) != 1 {
		t.Errorf("%d completions, refused %v", st.Completions, st.RefusedReasons())
	}
}
