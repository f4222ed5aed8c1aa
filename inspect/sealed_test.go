package inspect_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/seal/datagram"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// keyed records, at the second one, what two endpoints with these keys say while the first one writes, over a network with those faults.
func keyed(t *testing.T, keys [2]*seal.Ring, faults [2]func(int, []byte) simnet.Verdict, lives int) *inspect.Report {
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		addr := [2]transport.Addr{simnet.Addr(1), simnet.Addr(2)}
		for i := range addr {
			n.Link(addr[i], addr[1-i], simnet.Link{Latency: 100 * time.Microsecond, Script: faults[i]})
		}
		wire, err := tap.New(n.Attach(addr[1], simnet.Config{}), &file, tap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		memory, err := dgrdma.NewRegion(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		b, err := dgrdma.New(wire, &dgrdma.Config{ID: 2, Memory: memory, AcceptAny: true, Keys: keys[1]})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for range lives {
			a, err := dgrdma.New(n.Attach(addr[0], simnet.Config{}), &dgrdma.Config{ID: 1, Keys: keys[0], GiveUp: 4 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			c, err := a.Connect(dgrdma.Peer{ID: 2, Addr: addr[1], Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if err := c.Write(t.Context(), &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 5000)}}}); err != nil {
					break
				}
			}
			a.Close()
			time.Sleep(time.Second)
		}
	})
	r, err := captured.NewFileReader(bytes.NewReader(file.Bytes()), captured.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return analyze(t, r)
}

func ring(b byte) *seal.Ring { return &seal.Ring{All: &seal.Key{b}} }

// kinds returns what is found.
func kinds(r *inspect.Report) string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, string(f.Severity)+": "+f.Kind)
	}
	return strings.Join(all, ", ")
}

// TestSealedCountsAreThoseOfTheNetwork: what counters tell of a capture at the receiver is what the network did, in one life of the sender and the next.
func TestSealedCountsAreThoseOfTheNetwork(t *testing.T) {
	for _, tt := range []struct{ drop, double, delay float64 }{{}, {drop: 0.1}, {double: 0.1}, {delay: 0.1}} {
		dice := rand.New(rand.NewPCG(5, 5))
		var sent, dropped, doubled, delayed int
		script := func(_ int, b []byte) (v simnet.Verdict) {
			x := dice.Float64()
			if seal.KindOf(b) != seal.Sealed {
				return v
			}
			sent++
			switch {
			case x < tt.drop:
				v.Drop = true
				dropped++
			case x < tt.double:
				v.Copies = 1
				doubled++
			case x < tt.delay:
				v.Delay = 50 * time.Microsecond
				delayed++
			}
			return v
		}
		r := keyed(t, [2]*seal.Ring{ring(1), ring(1)}, [2]func(int, []byte) simnet.Verdict{script}, 2)
		if len(r.Sealed) != 2 || len(r.Flows) != 0 {
			t.Fatalf("%+v: %d ways, %d flows", tt, len(r.Sealed), len(r.Flows))
		}
		w := r.Sealed[0]
		if got := int(w.Frames); got != sent-dropped+doubled || w.Copies != doubled || w.Strays != 0 {
			t.Errorf("%+v: %d frames and %d copies of %d, %d dropped, %d doubled", tt, got, w.Copies, sent, dropped, doubled)
		}
		// Of what was lost behind the last that came under a key nothing tells.
		if w.Missing > dropped || w.Missing < dropped-4 {
			t.Errorf("%+v: %d missing, %d dropped", tt, w.Missing, dropped)
		}
		if w.Late > delayed || tt.delay > 0 && w.Late == 0 || tt.delay == 0 && w.Late > 0 {
			t.Errorf("%+v: %d late, %d delayed", tt, w.Late, delayed)
		}
		back := r.Sealed[1]
		if w.From.ID != 1 || w.Keys != 2 || w.Ended+back.Ended < 2 || w.Unended+back.Unended > 0 || back.Missing+back.Copies+back.Late > 0 || back.Frames == 0 {
			t.Errorf("%+v: there %+v, back %+v", tt, w, back)
		}
		if want := "note: sealed"; !strings.Contains(kinds(r), want) || strings.Contains(kinds(r), "problem") {
			t.Errorf("%+v: %s", tt, kinds(r))
		}
	}
}

// TestSealedWithOtherKeys: where the two have different keys, or one of them has none, that is found.
func TestSealedWithOtherKeys(t *testing.T) {
	for _, tt := range []struct {
		name     string
		one, two *seal.Ring
		want     string
	}{
		{"different", ring(1), ring(2), "problem: challenge ignored"},
		{"the second has none", ring(1), nil, "problem: no challenge"},
		{"the first has none", nil, ring(2), ""},
		{"not for each other", ring(1), &seal.Ring{Own: map[uint16]*seal.Key{9: {1}}}, "problem: no challenge"},
	} {
		if got := kinds(keyed(t, [2]*seal.Ring{tt.one, tt.two}, [2]func(int, []byte) simnet.Verdict{}, 1)); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// sealedStory tells of two with keys.
type sealedStory struct {
	*story
	*capturetest.Talk
	salt byte
}

func (s *sealedStory) says(datagrams ...[]byte) {
	for _, b := range datagrams {
		dst, src := frame.EndpointID(binary.LittleEndian.Uint16(b)), frame.EndpointID(binary.LittleEndian.Uint16(b[2:]))
		s.a.Add(s.packet(src, dst, b))
	}
}

// frames are n sealed ones from 1 to 2.
func (s *sealedStory) frames(n int) (all [][]byte) {
	for range n {
		s.salt++
		all = append(all, s.There(seal.Salt{s.salt}, 100))
	}
	return all
}

func TestSealedStories(t *testing.T) {
	for _, tt := range []struct {
		name string
		tell func(s *sealedStory)
		want string // kinds of findings
		text string // in one of them
	}{
		{"a clean one", func(s *sealedStory) {
			s.says(s.Question, s.Challenge, s.First, s.Second)
			s.says(s.frames(2000)...)
			s.says(s.Back(seal.Salt{1}, 100))
		}, "note: sealed", "2,001 frames from endpoint 1 to endpoint 2, and back, are sealed: "},
		{"gaps", func(s *sealedStory) {
			all := s.frames(3000)
			s.says(all[:10]...)
			s.says(all[12:600]...)
			s.says(all[700:1000]...)
			s.says(all[2900:]...)
		}, "warning: sealed gap, note: sealed", "2,002 sealed frames from endpoint 1 to endpoint 2 are not in the capture"},
		{"a leap", func(s *sealedStory) {
			s.says(capturetest.Patch(s.frames(1)[0], 4, 10))
			for i := range 5 {
				s.says(capturetest.Patch(s.frames(1)[0], 4, uint32(1_000_000+i)))
			}
		}, "warning: sealed gap, note: sealed", "999,989 sealed frames"},
		{"another order", func(s *sealedStory) {
			all := s.frames(9)
			s.says(all[0], all[2], all[1], all[3], all[5], all[7], all[6], all[4], all[8])
		}, "note: sealed, note: sealed late", "3 sealed frames from endpoint 1 to endpoint 2 came after later ones"},
		{"copies", func(s *sealedStory) {
			all := s.frames(20)
			s.says(all...)
			s.says(all[3], all[19])
		}, "note: sealed, note: sealed copies", "2 sealed frames from endpoint 1 to endpoint 2 came again under the same counter"},
		{"all twice", func(s *sealedStory) {
			for _, b := range s.frames(20) {
				s.says(b, b)
			}
		}, "warning: twice in the capture, note: sealed", "20 sealed frames from endpoint 1 to endpoint 2 are in the capture twice"},
		{"a damaged counter", func(s *sealedStory) {
			s.says(s.frames(3)...)
			s.says(capturetest.PatchByte(s.frames(1)[0], 8, 9))
			s.says(s.frames(3)...)
		}, "warning: sealed gap, note: sealed, note: sealed stray", "1 sealed frame from endpoint 1 to endpoint 2 has a counter far from all others"},
		{"another key under the same index", func(s *sealedStory) {
			s.says(s.frames(100)...)
			s.Talk = capturetest.Sealed(t, 1, 2)
			s.says(s.frames(100)...)
			s.Talk = capturetest.Sealed(t, 1, 2)
			s.says(s.Question, s.Challenge, s.First, s.Second)
			s.says(s.frames(5000)...)
			s.Talk = capturetest.Sealed(t, 1, 2)
			s.says(s.frames(100)...)
		}, "note: sealed", ""},
		{"the capture began late", func(s *sealedStory) {
			s.frames(1000)
			s.says(s.frames(5)...)
		}, "note: sealed", "5 frames"},
		{"nobody is there", func(s *sealedStory) {
			s.says(s.Question, s.Question, s.Question)
			s.Talk = capturetest.Sealed(t, 1, 2)
			s.says(s.Question, s.Question)
		}, "problem: no challenge", "Endpoint 1 asked endpoint 2 for a key 5 times, and got no challenge: nobody is there"},
		{"it began a moment ago", func(s *sealedStory) { s.says(s.Question) }, "", ""},
		{"it has no key", func(s *sealedStory) {
			s.says(s.Question)
			s.hello(2, 1, 9)
			s.says(s.Question)
		}, "problem: no challenge, problem: not sealed", "that sends frames, and takes none that are sealed"},
		{"no room", func(s *sealedStory) { s.says(s.Question, s.Challenge, s.First, s.First) },
			"problem: no second message", "Endpoint 1 answered what endpoint 2 challenged it with, twice, and got no key"},
		{"other keys", func(s *sealedStory) { s.says(s.Question, s.Challenge, s.Question, s.Question, s.Challenge) },
			"problem: challenge ignored", "Endpoint 1 asked endpoint 2 for a key 3 times, was challenged twice, and answered no challenge: the two were given different keys"},
		{"other keys, of whoever is there", func(s *sealedStory) {
			for _, at := range []frame.EndpointID{2, 3} {
				s.Talk = capturetest.Sealed(t, 1, 0)
				for range 2 {
					s.a.Add(s.packet(1, at, s.Question))
					s.a.Add(s.packet(at, 1, s.Challenge))
				}
			}
		}, "problem: challenge ignored, problem: challenge ignored", "Endpoint 1 asked whoever is at 02:00:00:00:00:03 for a key twice, was challenged twice"},
		{"several talks", func(s *sealedStory) {
			s.says(s.frames(5)...)
			for _, at := range []frame.EndpointID{2, 3} {
				s.Talk = capturetest.Sealed(t, 1, 0)
				s.a.Add(s.packet(1, at, s.frames(1)[0]))
				s.a.Add(s.packet(at, 1, s.Back(seal.Salt{1}, 40)))
			}
		}, "note: sealed", "5 frames from endpoint 1 to endpoint 2 and 4 frames to ask who is at an address, and to answer, are sealed: "},
		{"questions alone", func(s *sealedStory) {
			for _, at := range []frame.EndpointID{2, 3} {
				s.Talk = capturetest.Sealed(t, 1, 0)
				s.a.Add(s.packet(1, at, s.frames(1)[0]))
			}
		}, "note: sealed", "2 frames to ask who is at an address, and to answer, are sealed: "},
		{"several pairs", func(s *sealedStory) {
			for _, at := range []frame.EndpointID{2, 3} {
				s.Talk = capturetest.Sealed(t, 1, uint16(at))
				s.a.Add(s.packet(1, at, s.frames(1)[0]))
			}
		}, "note: sealed", "2 frames between 2 pairs of endpoints are sealed: "},
		{"once in vain", func(s *sealedStory) {
			s.says(s.Question, s.Question)
			s.Talk = capturetest.Sealed(t, 1, 2)
			s.says(s.Question, s.Challenge, s.First, s.Second, s.Back(seal.Salt{1}, 40))
		}, "note: no challenge, note: sealed", ""},
		{"it lost the key", func(s *sealedStory) {
			s.says(s.frames(5)...)
			s.says(s.Unasked, s.Question, s.Challenge, s.First, s.Second)
		}, "warning: key unknown, note: sealed", "Endpoint 2 told endpoint 1 once that it does not know the key"},
		{"it sends what is not sealed", func(s *sealedStory) {
			s.data(1, 1, 3) // before
			s.says(s.frames(5)...)
			s.hello(2, 1, 9)
			s.hello(2, 1, 9)
			s.data(4, 4, 1)
		}, "problem: not sealed, problem: not sealed, note: sealed, note: never acknowledges", "2 frames from endpoint 2 to endpoint 1 are not sealed"},
		{"one direction", func(s *sealedStory) {
			s.says(s.Question, s.Question)
			s.says(s.frames(5)...)
		}, "note: sealed, note: one direction", "nothing of endpoint 2 is in the capture"},
	} {
		s := &sealedStory{story: newStory(), Talk: capturetest.Sealed(t, 1, 2)}
		tt.tell(s)
		r := s.a.Report()
		if got := kinds(r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		var all []string
		for _, f := range r.Findings {
			all = append(all, f.Text)
			for _, n := range f.Records {
				if n < 1 || n > s.record {
					t.Errorf("%s: %s: record %d of %d", tt.name, f.Text, n, s.record)
				}
			}
		}
		if !strings.Contains(strings.Join(all, "\n"), tt.text) {
			t.Errorf("%s: %q, want %q", tt.name, all, tt.text)
		}
	}
}

// TestSealedReport: in JSON all is told of each direction.
func TestSealedReport(t *testing.T) {
	s := &sealedStory{story: newStory(), Talk: capturetest.Sealed(t, 1, 2)}
	s.says(s.Question, s.Challenge, s.First, s.Second)
	s.says(s.frames(3)...)
	s.says(s.Back(seal.Salt{1}, 60), s.Unasked)
	r := s.a.Report()
	if c := r.Capture; c.Frames != 9 || c.Sealed != 4 || c.Handshakes != 5 || c.Bytes != 46+46+104+104+3*129+89+46 {
		t.Errorf("%+v", c)
	}
	got, err := json.Marshal(r.Sealed)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"number":1,"from":{"address":"02:00:00:00:00:01","id":1},"to":{"address":"02:00:00:00:00:02","id":2},` +
		`"first_ns":0,"last_ns":6000000,"first_record":1,"last_record":7,"frames":3,"inside_bytes":300,"bytes":537,"keys":1,` +
		`"missing":0,"late":0,"copies":0,"strays":0,"questions":1,"challenges":0,"unasked":0,"firsts":1,"seconds":0,` +
		`"handshakes_ended":1,"handshakes_never_ended":0,"unsealed_frames":0},` +
		`{"number":2,"from":{"address":"02:00:00:00:00:02","id":2},"to":{"address":"02:00:00:00:00:01","id":1},` +
		`"first_ns":1000000,"last_ns":8000000,"first_record":2,"last_record":9,"frames":1,"inside_bytes":60,"bytes":285,"keys":1,` +
		`"missing":0,"late":0,"copies":0,"strays":0,"questions":0,"challenges":2,"unasked":1,"firsts":0,"seconds":1,` +
		`"handshakes_ended":0,"handshakes_never_ended":0,"unsealed_frames":0}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSealedMemory: at most as many directions are followed as flows, whoever seals, with whatever counters.
func TestSealedMemory(t *testing.T) {
	a := inspect.New()
	before := heap()
	random := rand.New(rand.NewPCG(1, 1))
	s := &story{a: a, at: time.Unix(1e9, 0)}
	b := make([]byte, 100)
	const frames = 200_000
	for range frames {
		binary.LittleEndian.PutUint64(b[4:], random.Uint64()>>(random.Uint32()%40))
		b[0], b[2] = byte(random.Uint32())|1, byte(random.Uint32())|1
		b[datagram.FlagsAt] = datagram.Flag | byte(random.Uint32())&0xE
		s.a.Add(s.packet(frame.EndpointID(b[2]), frame.EndpointID(b[0]), b))
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d bytes", grown)
	}
	if r := a.Report(); len(r.Sealed) != 128 || r.Capture.Unfollow == 0 || r.Capture.Frames != frames {
		t.Errorf("%d ways, %+v", len(r.Sealed), r.Capture)
	}
}
