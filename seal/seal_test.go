package seal

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

const minute = time.Minute

var (
	group = Key{1, 2, 3}
	ids   = [idsSize]byte{2, 0, 1, 0}
	here  = []byte("10.0.0.1:7000")
)

var (
	mine  = Instance{1}
	other = Instance{2}
)

// shake has two shake hands.
func shake(t testing.TB, one, another Key) (asker, responder Keys) {
	t.Helper()
	var c Challenger
	a := Ask(&one, mine, 3)
	if ok, why := a.Take(c.Answer(nil, minute, &another, a.Again(nil, ids), here)); !ok {
		t.Fatalf("no first message: %v", why)
	}
	fresh, why := c.Check(minute, &another, a.Again(nil, ids), here)
	if fresh == nil {
		t.Fatalf("refused: %v", why)
	}
	second, responder, ok := fresh.Second(nil, other, 5)
	if !ok {
		t.Fatal("no second message")
	}
	asker, ok = a.Second(second)
	if !ok || asker.Index != 3 || asker.Peer != other || responder.Index != 5 || responder.Peer != mine {
		t.Fatalf("the second message is refused: %v, %+v, %+v", ok, asker, responder)
	}
	return asker, responder
}

func plain(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	copy(b, ids[:])
	return b
}

func sealed(s *Sealing, b []byte) []byte {
	return s.Seal(make([]byte, 0, len(b)+Overhead), b, nil, &Salt{9})
}

// What one seals the other opens, in both directions, and says under which index.
func TestSealed(t *testing.T) {
	a, r := shake(t, group, group)
	for n := 10; n < 9000; n = n*2 + 1 {
		b := sealed(a.Sealing, plain(n))
		if len(b) != SealedSize(n) || KindOf(b) != Sealed || Index(b) != 5 || len(b) < 46 || bytes.Contains(b, plain(n)[4:]) {
			t.Fatalf("%d bytes are sealed as %x", n, b)
		}
		if got, ok := r.Opening.Open(b); !ok || !bytes.Equal(got[:n], plain(n)) || len(got) > max(n, leastPlain) {
			t.Fatalf("%d bytes: opened %v as %x", n, ok, got)
		}
		b = sealed(r.Sealing, plain(n))
		if got, ok := a.Opening.Open(b); !ok || !bytes.Equal(got[:n], plain(n)) || Index(b) != 3 {
			t.Fatalf("%d bytes back: %v", n, ok)
		}
	}
}

// Whatever is changed, cut, came before, is reflected or is of another handshake is refused, and what comes behind is opened.
func TestNothingElseIsOpened(t *testing.T) {
	a, r := shake(t, group, group)
	b := sealed(a.Sealing, plain(100))
	for i := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			if KindOf(c) != Sealed {
				continue
			}
			if _, ok := r.Opening.Open(c); ok {
				t.Fatalf("bit %d of byte %d changed: opened", bit, i)
			}
		}
	}
	for n := idsSize + Overhead; n < len(b); n++ {
		if _, ok := r.Opening.Open(bytes.Clone(b[:n])); ok {
			t.Fatalf("cut to %d: opened", n)
		}
	}
	if _, ok := a.Opening.Open(bytes.Clone(b)); ok {
		t.Error("reflected: opened")
	}
	if _, other := shake(t, group, group); true {
		if _, ok := other.Opening.Open(bytes.Clone(b)); ok {
			t.Error("of another handshake: opened")
		}
	}
	again := bytes.Clone(b)
	if _, ok := r.Opening.Open(b); !ok {
		t.Fatal("refused what was not changed")
	}
	if _, ok := r.Opening.Open(again); ok {
		t.Error("replayed: opened")
	}
}

// In any order, each is opened once, unless it comes too late.
func TestOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	var w window
	came := map[uint64]bool{}
	newest := uint64(0)
	for range 400000 {
		n := uint64(max(0, int64(newest)+rnd.Int64N(3*windowSize)-2*windowSize))
		if rnd.IntN(1000) == 0 {
			n += 5 * windowSize
		}
		late := len(came) > 0 && newest > n && newest-n >= windowSize-64
		if got, want := w.may(n), !came[n] && !late; got != want {
			t.Fatalf("seed %d: counter %d, newest %d: %v, want %v", seed, n, newest, got, want)
		}
		if w.may(n) {
			w.mark(n)
			came[n] = true
			newest = max(newest, n)
		}
	}
}

// A key is followed by the next one before it is worn, the receiver follows, what comes of the one before is opened, and what
// seems to be of one further on is not.
func TestGenerations(t *testing.T) {
	a, r := shake(t, group, group)
	old := *a.Sealing.gen
	var late []byte
	for g := range uint64(3) {
		a.Sealing.count = (g+1)<<generationBits - 2
		late = sealed(a.Sealing, plain(64))
		for range 4 {
			b := sealed(a.Sealing, plain(64))
			if got, ok := r.Opening.Open(b); !ok || !bytes.Equal(got, plain(64)) {
				t.Fatalf("generation %d: refused", g)
			}
		}
		if _, ok := r.Opening.Open(late); !ok {
			t.Errorf("generation %d: what was late is refused", g)
		}
	}
	if a.Sealing.gen.number != 3 || a.Sealing.gen.key == old.key || r.Opening.gen.key != a.Sealing.gen.key {
		t.Errorf("generation %d", a.Sealing.gen.number)
	}
	forged := sealed(a.Sealing, plain(64))
	putCounter(forged[idsSize:], 30<<generationBits)
	if _, ok := r.Opening.Open(forged); ok || r.Opening.gen.number != 3 {
		t.Error("a counter from far ahead moves the generation")
	}
	forged = sealed(a.Sealing, plain(64))
	putCounter(forged[idsSize:], 4<<generationBits)
	if _, ok := r.Opening.Open(forged); ok || r.Opening.gen.number != 3 {
		t.Error("what is not authentic moves the generation")
	}
	a.Sealing.count = mostCounter
	if a.Sealing.Spent() || !a.Sealing.Worn() {
		t.Error("the last counter is not used")
	}
	a.Sealing.gen = &old
	a.Sealing.gen.number = mostCounter >> generationBits
	sealed(a.Sealing, plain(64))
	if !a.Sealing.Spent() {
		t.Error("there are more counters than fit")
	}
}

// No handshake ends with another key, between others, from elsewhere, with a challenge that is old, or that served.
func TestHandshakeRefused(t *testing.T) {
	c := new(Challenger)
	a := Ask(&group, mine, 1)
	challenge := c.Answer(nil, minute, &group, a.Again(nil, ids), here)
	if ok, _ := a.Take(challenge); !ok {
		t.Fatal("a challenge is not taken")
	}
	if ok, why := a.Take(challenge); ok || why != Stale {
		t.Errorf("a challenge is taken twice: %v, %v", ok, why)
	}
	first := a.Again(nil, ids)
	refused := func(what string, want Reason, now time.Duration, key Key, b, from []byte) {
		t.Helper()
		if f, why := c.Check(now, &key, b, from); f != nil || why != want {
			t.Errorf("%s: %v, %v", what, f != nil, why)
		}
	}
	refused("another key", WrongKey, minute, Key{9}, first, here)
	refused("from elsewhere", Stale, minute, group, first, []byte("10.0.0.2:7000"))
	refused("much later", Stale, minute+2*challengeTime, group, first, here)
	for i := range first {
		changed := bytes.Clone(first)
		changed[i] ^= 4
		if KindOf(changed) != First || i >= idsSize && i < flagsAt {
			continue
		}
		if f, _ := c.Check(minute, &group, changed, here); f != nil {
			t.Errorf("byte %d changed: answered", i)
		}
	}
	fresh, _ := c.Check(minute+challengeTime, &group, first, here)
	if fresh == nil {
		t.Fatal("refused half a minute later")
	}
	second, _, _ := fresh.Second(nil, other, 2)
	refused("replayed", Stale, minute+challengeTime, group, first, here)
	if n := testing.AllocsPerRun(10, func() {
		second[noiseAt] ^= 1
		if _, ok := a.Second(second); ok {
			t.Error("a second with another key of the handshake is taken")
		}
		second[noiseAt] ^= 1
	}); n > 0 {
		t.Errorf("a forged second costs the work of a handshake: %v allocations", n)
	}
	for i := range second {
		changed := bytes.Clone(second)
		changed[i] ^= 4
		if KindOf(changed) != Second || i < handshakeHead {
			continue
		}
		if _, ok := a.Second(changed); ok {
			t.Errorf("byte %d of the second changed: taken", i)
		}
	}
	for _, e := range []byte{0, 1} { // with these every secret is the same
		changed := bytes.Clone(second)
		clear(changed[noiseAt:][:32])
		changed[noiseAt] = e
		new(signer).sign(&group, changed)
		if _, ok := a.Second(changed); ok {
			t.Errorf("a second with the key %d is taken", e)
		}
	}
	if _, ok := a.Second(second); !ok {
		t.Error("the second is refused, after forged ones")
	}
	if ok, why := Ask(&group, mine, 1).Take(challenge); ok || why != Stale {
		t.Error("a challenge that somebody else asked for is answered")
	}
}

// TestUsedChallengesAreBounded: as many as are remembered may be used in a while; one more makes all
// before worthless, the used ones among them, and that is counted.
func TestUsedChallengesAreBounded(t *testing.T) {
	c := new(Challenger)
	a := Ask(&group, mine, 1)
	if ok, _ := a.Take(c.Answer(nil, minute, &group, a.Again(nil, ids), here)); !ok {
		t.Fatal("the challenge is not taken")
	}
	first := a.Again(nil, ids)
	for i := range mostUsed + 1 {
		used := bytes.Clone(first)
		binary.BigEndian.PutUint32(used[handshakeHead+nonceSize:], uint32(i))
		if c.use(used); c.Full != uint64(i/mostUsed) || len(c.used[0])+len(c.used[1]) > mostUsed {
			t.Fatalf("after %d it was full %d times, and %d are remembered", i+1, c.Full, len(c.used[0])+len(c.used[1]))
		}
	}
	if f, why := c.Check(minute, &group, first, here); f != nil || why != Stale {
		t.Errorf("a challenge from before is taken: %v", why)
	}
}

// A challenge is no longer than the question, so that nobody is flooded in another's name.
func TestNothingIsAmplified(t *testing.T) {
	var c Challenger
	q := Ask(&group, mine, 1).Again(nil, ids)
	if n := len(c.Answer(nil, minute, &group, q, here)); n > len(q) {
		t.Errorf("%d bytes answer %d", n, len(q))
	}
	a, _ := shake(t, group, group)
	b := sealed(a.Sealing, plain(10))
	if n := len(c.Answer(nil, minute, &group, b, here)); n > len(b) || n > First.Size() || Second.Size() > First.Size() {
		t.Errorf("%d bytes answer %d", n, len(b))
	}
	for n := range len(b) {
		if k := KindOf(b[:n]); k != Plain {
			t.Errorf("cut to %d it is of kind %d, and would be answered by more", n, k)
		}
	}
}

// A frame of which the end lies elsewhere is sealed as if it were in one piece, a short one too.
func TestTwoPieces(t *testing.T) {
	a, r := shake(t, group, group)
	for n := idsSize; n < 150; n++ {
		for at := idsSize; at <= n; at++ {
			whole, again := plain(n), *a.Sealing
			b := a.Sealing.Seal(bytes.Repeat([]byte{0xee}, SealedSize(n))[:0], whole[:at], whole[at:], &Salt{9})
			if want := sealed(&again, whole); !bytes.Equal(b, want) {
				t.Fatalf("%d bytes, %d of them in front: %x, want %x", n, at, b, want)
			}
			if got, ok := r.Opening.Open(b); !ok || !bytes.Equal(got[:n], whole) || len(bytes.Trim(got[n:], "\x00")) > 0 {
				t.Fatalf("%d bytes, %d of them in front: opened %x (%v)", n, at, got, ok)
			}
		}
	}
}

// Two batches are sealed under different nonces even if one machine seals both with the same counter.
func TestSalt(t *testing.T) {
	a, _ := shake(t, group, group)
	again := *a.Sealing // as a snapshot that is resumed
	x := a.Sealing.Seal(make([]byte, 0, 200), plain(100), nil, &Salt{1})
	y := again.Seal(make([]byte, 0, 200), plain(100), nil, &Salt{2})
	if bytes.Equal(x[headSize:], y[headSize:]) {
		t.Error("sealed twice under the same nonce")
	}
}

func TestNothingIsAllocated(t *testing.T) {
	a, r := shake(t, group, group)
	b, dst, salt := plain(1400), make([]byte, 0, 1500), &Salt{1}
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok := r.Opening.Open(a.Sealing.Seal(dst, b[:40], b[40:], salt)); !ok {
			t.Fatal("refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKeyText(t *testing.T) {
	k := NewKey()
	if got, err := ParseKey(k.Text()); err != nil || got != k {
		t.Errorf("%v %v", got, err)
	}
	for _, s := range []string{"", "abc", k.Text()[1:], k.Text() + "AAAA"} {
		if _, err := ParseKey(s); err == nil {
			t.Errorf("%q is a key", s)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	var c Challenger
	q, dst := Ask(&group, mine, 1).Again(nil, ids), make([]byte, 0, MostHandshake)
	b.ReportAllocs()
	for b.Loop() {
		if !c.Authentic(&group, q) {
			b.Fatal("refused")
		}
		c.Answer(dst, minute, &group, q, here)
	}
}

// FuzzOpen: whatever comes, nothing but what was sealed is opened, and nothing panics.
func FuzzOpen(f *testing.F) {
	a, r := shake(f, group, group)
	came := sealed(a.Sealing, plain(40))
	f.Add(bytes.Clone(came))
	r.Opening.Open(came)
	f.Add(Ask(&group, mine, 1).Again(nil, ids))
	var c Challenger
	f.Fuzz(func(t *testing.T, b []byte) {
		switch KindOf(b) {
		case Sealed:
			if _, ok := r.Opening.Open(bytes.Clone(b)); ok {
				t.Fatalf("opened %x", b)
			}
		case Question:
			c.Answer(nil, minute, &group, b, here)
		case First:
			if f, _ := c.Check(minute, &group, b, here); f != nil {
				t.Fatalf("answered %x", b)
			}
		case Challenge:
			Ask(&group, mine, 1).Take(b)
		}
	})
}

func BenchmarkSealOpen(b *testing.B) {
	for _, s := range []suite{chacha, aesGCM} {
		b.Run(map[suite]string{chacha: "chacha", aesGCM: "aes"}[s], func(b *testing.B) {
			seal, open := newSealing(s, group, 1), newOpening(s, group)
			p, dst, salt := plain(1440), make([]byte, 0, 1500), &Salt{1}
			b.SetBytes(1440)
			for b.Loop() {
				if _, ok := open.Open(seal.Seal(dst, p, nil, salt)); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
