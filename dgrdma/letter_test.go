package dgrdma

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// mailbox is told how letters went: of each once.
type mailbox struct {
	mu      sync.Mutex
	settled []error
	times   []int
}

func (b *mailbox) letter(life uint32, text string) Letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := len(b.times)
	b.times, b.settled = append(b.times, 0), append(b.settled, nil)
	return Letter{Life: life, Bytes: []byte(text), Settled: func(err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.times[i]++
		b.settled[i] = err
	}}
}

func (b *mailbox) once(t *testing.T, want error) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, n := range b.times {
		if n != 1 {
			t.Errorf("letter %d of %d is settled %d times", i, len(b.times), n)
		}
		if want != nil && !errors.Is(b.settled[i], want) {
			t.Errorf("letter %d: %v, want %v", i, b.settled[i], want)
		}
	}
}

// came returns the letters that came.
func (s *shelf) came() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.letters)
}

// posts is a pair with a service at both ends.
func posts(t *testing.T, pc pairConfig) (p *pair, here, there *shelf) {
	t.Helper()
	p = newPair(t, pc)
	here, there = newShelf("post", 1<<17), newShelf("post", 1<<17)
	serve(t, p.a, here)
	serve(t, p.b, there)
	time.Sleep(time.Second)
	return p, here, there
}

// TestLettersAreAnsweredOnce checks that each letter is answered once, whatever ends the connection,
// and whenever.
func TestLettersAreAnsweredOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(p *pair)
		want error
	}{
		{"the endpoint is closed", func(p *pair) { p.a.Close() }, ErrClosed},
		{"the connection is closed", func(p *pair) { p.toB.Close() }, ErrClosed},
		{"reset", func(p *pair) { p.toB.Reset(0) }, nil},
		{"the peer is down", func(p *pair) {}, ErrPeerDown},
		{"the peer restarts", func(p *pair) {
			kill(p.b)
			p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB})
			p.net.Link(addrA, addrB, simnet.Link{})
			p.connect(p.b, Peer{ID: 1, Addr: addrA})
		}, ErrPeerRestarted},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, here, there := posts(t, pairConfig{a: Config{GiveUp: 5 * time.Second}})
				defer p.close()
				p.net.Link(addrA, addrB, simnet.Link{Down: true})
				var b mailbox
				for range 10 {
					here.channel(0).Mail(b.letter(p.toB.Life(), "letter"))
				}
				time.Sleep(time.Second)
				c.end(p)
				time.Sleep(time.Minute)
				b.once(t, c.want)
				if n := here.channel(0).Waiting(); n != 0 || len(there.came()) != 0 {
					t.Errorf("%d wait, %d came", n, len(there.came()))
				}
				here.channel(0).Mail(b.letter(p.toB.Life(), "late")) // Settled perhaps within Mail
				time.Sleep(time.Minute)
				b.once(t, nil)
			})
		})
	}
}

// TestShutdownDeliversLetters checks that Shutdown delivers letters that were sent before it.
func TestShutdownDeliversLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, here, there := posts(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		var b mailbox
		for range 10 {
			here.channel(0).Mail(b.letter(p.toB.Life(), "letter"))
		}
		down := make(chan error)
		go func() { down <- p.a.Shutdown(t.Context()) }()
		time.Sleep(time.Millisecond)
		var late mailbox
		here.channel(0).Mail(late.letter(p.toB.Life(), "late"))
		late.once(t, ErrClosed)
		if err := <-down; err != nil {
			t.Error(err)
		}
		b.once(t, nil)
		if len(there.came()) != 10 {
			t.Errorf("%d of 10 came", len(there.came()))
		}
	})
}

// TestNoLettersToOtherKinds checks that a peer of another kind gets no letters, for they would be
// written into its memory (attack A18, SECURITY.md).
func TestNoLettersToOtherKinds(t *testing.T) {
	profile := OpenCPI(false)
	synctest.Test(t, func(t *testing.T) {
		p, here, _ := posts(t, pairConfig{a: Config{Profile: &profile}, b: Config{Profile: &profile}})
		defer p.close()
		var b mailbox
		here.channel(0).Mail(b.letter(p.toB.Life(), "letter"))
		time.Sleep(time.Minute)
		b.once(t, ErrNoService)
		if !bytes.Equal(p.memB.Bytes(), make([]byte, 1<<20)) {
			t.Error("memory was written into")
		}
	})
}

// TestLettersOfAnyLength checks that a bell that tells of more than the box holds is noise, and
// that what was not written is not read from what lies after the box.
func TestLettersOfAnyLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, there := posts(t, pairConfig{})
		defer p.close()
		p.toB.size.Store(0)
		bell := there.channel(0).Base() + mailBells
		for _, c := range []struct{ unit, n uint32 }{
			{0, 0}, {1, MaxLetter}, {17, MaxLetter + 1}, {17, 1 << 16}, {17, 1 << 31}, {17, 1<<32 - 1}, {18, 5}, {18, MaxLetter + 1},
		} {
			if err := settle(t, there.otherEnd(p), &Transaction{Completion: Word(bell+4*c.unit, c.n)}); err != nil {
				t.Error(err)
			}
		}
		if got := there.came(); len(got) != 2 || len(got[0]) != 0 || len(got[1]) != MaxLetter {
			t.Errorf("%d letters", len(got))
		}
	})
}

// otherEnd returns a flow to the service at b.
func (s *shelf) otherEnd(p *pair) *Flow { return p.toB.Channel(s.name).Flow() }

// TestLettersPass checks that letters pass what many flows have posted.
func TestLettersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, here, _ := posts(t, pairConfig{size: 32 << 20, link: gigabit, a: Config{Window: 16}, b: Config{Window: 16}})
		defer p.close()
		base := p.toB.Channel("post").Base()
		for range 30 { // whose turns take 4 ms
			flow := here.channel(0).Flow()
			for range 10 {
				if err := flow.Post(write(base+MailSize, make([]byte, 60_000), base+MailSize, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(2 * time.Millisecond)
		began := time.Now()
		arrived := make(chan struct{})
		here.channel(0).Mail(Letter{Life: p.toB.Life(), Bytes: []byte("letter"), Settled: func(error) { close(arrived) }})
		<-arrived
		if took := time.Since(began); took > 500*time.Microsecond {
			t.Errorf("a letter took %v", took)
		}
	})
}

// TestLetterOfWhichPartIsNoise checks that a letter of which something went to other addresses
// never arrives, whatever part of it that is.
func TestLetterOfWhichPartIsNoise(t *testing.T) {
	for _, first := range []uint32{mailBox, MailSize} {
		synctest.Test(t, func(t *testing.T) {
			p, _, there := posts(t, pairConfig{})
			defer p.close()
			base := there.channel(0).Base()
			x := &Transaction{Completion: Word(base+mailBells, 8), Segments: []Segment{
				{base + first, []byte("somewhat")}, {base + mailBox + MailSize - first, []byte("somewhat")},
			}}
			if err := settle(t, there.otherEnd(p), x); err != nil {
				t.Error(err)
			}
			if got := there.came(); len(got) != 0 {
				t.Errorf("%q came", got)
			}
		})
	}
}

// TestLongLetter checks that a letter that is too long is not sent, says so, and holds nothing up.
func TestLongLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, here, there := posts(t, pairConfig{})
		defer p.close()
		var b mailbox
		long := b.letter(p.toB.Life(), strings.Repeat("x", MaxLetter+1))
		here.channel(0).Mail(long)
		b.once(t, ErrTooLarge)
		if b.settled[0].Error() != "dgrdma: a letter of 1025 bytes, at most 1024" || !errors.Is(b.settled[0], ErrTooLarge) {
			t.Error(b.settled[0])
		}
		var fits mailbox
		here.channel(0).Mail(fits.letter(p.toB.Life(), strings.Repeat("x", MaxLetter)))
		time.Sleep(time.Second)
		fits.once(t, nil)
		if len(there.letters) != 1 || here.channel(0).Waiting() != 0 {
			t.Errorf("%d letters came, %d wait", len(there.letters), here.channel(0).Waiting())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.a.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown waits for a letter that was never sent: %v", err)
		}
	})
}

// TestLettersWithoutSettled checks that letters whose sender does not ask how they went are sent
// like others, and count until they have arrived.
func TestLettersWithoutSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, here, there := posts(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		ch := here.channel(0)
		want := []string{"x", "", "letter"}
		for _, text := range want {
			ch.Mail(Letter{Life: p.toB.Life(), Bytes: []byte(text)})
		}
		ch.Mail(Letter{Life: p.toB.Life() + 1, Bytes: []byte("to another life")})
		ch.Mail(Letter{Life: p.toB.Life(), Bytes: make([]byte, MaxLetter+1)})
		if n := ch.Waiting(); n != 4 {
			t.Errorf("%d wait", n)
		}
		time.Sleep(time.Second)
		if n := ch.Waiting(); n != 0 || !slices.Equal(there.came(), want) {
			t.Errorf("%q came, %d wait", there.came(), n)
		}
	})
}
