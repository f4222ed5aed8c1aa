package dgrdma

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestBriefHelloLeavesMemoryAlone checks that what a short HELLO brings about, which is forged under a peer's address, has no letter
// go to the beginning of the memory: the WELCOME that answers it has no list of services, and names an attempt that the peer did not make
// (attack A18, SECURITY.md).
func TestBriefHelloLeavesMemoryAlone(t *testing.T) {
	for _, forged := range [][]int{{0}, {1}, {0, 1}, {0, 0, 1, 1}} {
		for _, after := range []time.Duration{0, 10 * time.Microsecond, 1100 * time.Microsecond, 2100 * time.Microsecond} {
			t.Run(fmt.Sprint(forged, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { brief(t, forged, after) })
			})
		}
	}
}

func brief(t *testing.T, forged []int, after time.Duration) {
	p := newPair(t, pairConfig{})
	defer p.close()
	ids := [2]frame.EndpointID{5, 6}
	var all [2]*Endpoint
	var memory [2]*Region
	var shelves [2]*shelf
	for i, id := range ids {
		memory[i] = p.region(8192)
		all[i] = p.open(simnet.Addr(uint32(id)), &Config{ID: id, Memory: memory[i]})
		defer all[i].Close()
		shelves[i] = newShelf("post", 1<<16)
		serve(t, all[i], shelves[i])
		p.net.Link(simnet.Addr(uint32(id)), simnet.Addr(uint32(ids[1-i])), simnet.Link{Latency: time.Millisecond + time.Duration(i)})
	}
	for i, e := range all {
		p.connect(e, Peer{ID: ids[1-i], Addr: simnet.Addr(uint32(ids[1-i]))})
		ch := shelves[i].channel(0)
		ch.Mail(Letter{Life: ch.Conn().Life(), Bytes: []byte("letter")})
	}
	time.Sleep(after)
	for k, i := range forged {
		b := make([]byte, frame.HandshakeSize)
		h := frame.Handshake{Kind: frame.HandshakeHello, Sender: uint32(70 + k)}
		h.Put(b, ids[i], ids[1-i])
		p.net.Inject(simnet.Addr(uint32(ids[1-i])), simnet.Addr(uint32(ids[i])), b)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	for i := range all {
		if !bytes.Equal(memory[i].Bytes(), make([]byte, 8192)) {
			t.Errorf("endpoint %d: the memory was written into", ids[i])
		}
		if got := fmt.Sprint(shelves[i].letters); got != "[letter]" {
			t.Errorf("endpoint %d got the letters %s", ids[i], got)
		}
	}
}

// servicesMessage is the message that tells of services.
func servicesMessage(services ...frame.Service) msg {
	var list frame.Services
	for _, x := range services {
		list.Add(x)
	}
	b := make([]byte, frame.ServicesLen(&list))
	list.Put(b)
	return msg{frame.Message{Txn: 7, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Type: frame.TypeServices}, b}
}

// TestSentToNoOtherService checks that to a peer of which it is not known yet what it serves nothing is sent, neither to its memory nor
// a letter, and then only what is for a service that it has, at its place (attack A18, SECURITY.md).
func TestSentToNoOtherService(t *testing.T) {
	for _, posted := range []string{"post", "memory", "letter"} {
		for _, has := range []string{"post", "memory", "both"} {
			synctest.Test(t, func(t *testing.T) {
				s, e, c, epoch, end := awaited(t)
				defer end()
				post := newShelf("post", 1<<16)
				serve(t, e, post)
				s.briefly(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 77, Receiver: epoch})
				s.has(77, epoch, 0)
				s.acks(0)
				s.recv(time.Millisecond)
				errNotDone := errors.New("not done")
				done := errNotDone
				x := &Transaction{Completion: Word(1<<20+MailSize, 1), Done: func(_ *Transaction, err error) { done = err }}
				var err error
				switch posted {
				case "post":
					err = post.channel(0).Flow().Post(x)
				case "memory":
					err = c.Post(x)
				default:
					post.channel(0).Mail(Letter{Life: c.Life(), Bytes: []byte("letter"), Settled: func(err error) { done = err }})
				}
				if err != nil {
					t.Fatal(err)
				}
				messages := func(d time.Duration) (all []frame.Message) {
					time.Sleep(d)
					synctest.Wait()
					s.mu.Lock()
					defer s.mu.Unlock()
					for _, b := range s.raws {
						all = append(all, messagesIn(t, b)...)
					}
					s.raws = nil
					return all
				}
				if got := messages(500 * time.Millisecond); len(got) > 0 || done != errNotDone {
					t.Fatalf("%s: %v, sent before it is known what the peer serves: %+v", posted, done, got)
				}
				var list []frame.Service
				if has != "post" {
					list = append(list, serviceAt("memory", 0))
				}
				if has != "memory" {
					list = append(list, serviceAt("post", 1<<20))
				}
				s.send(1, servicesMessage(list...))
				got := messages(100 * time.Millisecond)
				meant := has == "both" || has == posted || posted == "letter" && has == "post"
				if sent := len(got) > 0; sent != meant || errors.Is(done, ErrNoService) == meant {
					t.Errorf("%s to a peer that has %s: sent %v, %v", posted, has, sent, done)
				}
				for _, m := range got {
					if at := max(m.Addr, m.CompletionAddr); posted == "letter" && (at < 1<<20 || at >= 1<<20+MailSize) {
						t.Errorf("the letter is sent to %#x", at)
					}
				}
			})
		}
	}
}

// told returns the lists of services that come until d from now, in frames of the session, and acknowledges them if acks is set.
func (s *fakePeer) told(d time.Duration, acks bool) (lists []string) {
	s.t.Helper()
	newest := frame.Seq(0)
	for _, f := range s.recv(d) {
		for c := f.Cursor(); c.Next(); {
			if list, ok := frame.ParseServices(c.Data); c.Msg.Type == frame.TypeServices && ok {
				lists = append(lists, list.String())
				newest = max(newest, f.Seq)
			}
		}
	}
	if acks && newest > 0 {
		s.acks(newest)
	}
	return lists
}

// TestServeIsToldAgain checks that a peer is told of each service that is added, at once, and again until it acknowledges that, also if an
// attacker forges HELLOs of another process under its name (attack A20, SECURITY.md); and not any more then.
func TestServeIsToldAgain(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.told(time.Minute, true)
		want := "memory"
		for i := range 4 {
			if i == 2 {
				s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 99})
				s.recv(time.Minute)
			}
			name := fmt.Sprintf("post%d", i)
			want += ", " + name
			serve(t, e, newShelf(name, 1<<16))
			if got := s.told(time.Microsecond, false); len(got) != 1 || got[0] != want {
				t.Errorf("service %d is told as %q, want %q", i, got, want)
			}
			if got := s.told(3*time.Second, true); len(got) < 2 || got[len(got)-1] != want {
				t.Errorf("service %d is told again as %q", i, got)
			}
			if got := s.told(time.Hour, false); len(got) > 0 {
				t.Errorf("told of %q when the peer has acknowledged it", got)
			}
		}
	})
}

// TestServeIsToldSilentPeers checks that a peer that came by itself is told of a service however long it has been silent, and not for ever:
// if it does not acknowledge that it times out as after any frame.
func TestServeIsToldSilentPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		w.comes(t, 10)
		if sent := w.frames(time.Hour); len(sent) > 0 {
			t.Errorf("%d frames for nothing", len(sent))
		}
		serve(t, e, newShelf("post", 1<<16))
		told := 0
		for _, s := range w.frames(time.Hour) {
			for c := s.session.Cursor(); c.Next(); {
				if list, ok := frame.ParseServices(c.Data); !ok || list.String() != "memory, post" {
					t.Errorf("told of %q", list.String())
				}
				told++
			}
		}
		if told == 0 || told > 20 {
			t.Errorf("told %d times", told)
		}
		if sent := w.frames(time.Hour); len(sent) > 0 {
			t.Errorf("%d frames after the peer was given up", len(sent))
		}
	})
}

// TestServeBeforeThePeerIsThere checks that a new service has no HELLO leave that would not.
func TestServeBeforeThePeerIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		connectTo(t, e, 10)
		w.frames(time.Hour)
		before := len(w.frames(time.Hour))
		serve(t, e, newShelf("post", 1<<16))
		sent := w.frames(time.Hour)
		for _, s := range sent {
			list, _ := s.f.Services()
			if h, ok := handshakeIn(&s.f); !ok || h.Kind != frame.HandshakeHello || list.String() != "memory, post" {
				t.Errorf("%+v, %q", h, list.String())
			}
		}
		if before == 0 || len(sent) > before {
			t.Errorf("%d HELLOs in an hour, and %d before", len(sent), before)
		}
	})
}
