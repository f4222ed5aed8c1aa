package capturetest

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/seal"
)

// Talk is what two endpoints with a key say to each other, all of it made as they make it.
type Talk struct {
	Question, Challenge, First, Second []byte

	Unasked []byte // the challenge of who does not know the key of There

	there, back *seal.Sealing
	ids         [4]byte
}

// Sealed has two ids shake hands; the first one begins. Its frames are sealed under the key 5, those of the other one under 3.
func Sealed(t testing.TB, one, another uint16) *Talk {
	t.Helper()
	const now = time.Minute
	var c seal.Challenger
	k, from, r := &seal.Key{7}, []byte("where it is"), &Talk{ids: idsOf(one, another)}
	a := seal.Ask(k, seal.NewInstance(), 3)
	r.Question = a.Again(nil, r.ids)
	r.Challenge = c.Answer(nil, now, k, r.Question, from)
	if ok, why := a.Take(r.Challenge); !ok {
		t.Fatalf("the challenge is refused: %v", why)
	}
	r.First = a.Again(nil, r.ids)
	f, why := c.Check(now, k, r.First, from)
	if f == nil {
		t.Fatalf("the first message is refused: %v", why)
	}
	second, keys, ok := f.Second(nil, seal.NewInstance(), 5)
	if r.Second, r.back = second, keys.Sealing; !ok {
		t.Fatal("no second message")
	}
	if keys, ok = a.Second(second); !ok {
		t.Fatal("the second message is refused")
	}
	r.there = keys.Sealing
	r.Unasked = c.Answer(nil, now, k, r.There(seal.Salt{1}, 64), from)
	return r
}

func idsOf(one, another uint16) (ids [4]byte) {
	binary.LittleEndian.PutUint16(ids[:], another)
	binary.LittleEndian.PutUint16(ids[2:], one)
	return ids
}

// There seals a frame of n bytes of the one who began.
func (r *Talk) There(salt seal.Salt, n int) []byte { return sealed(r.there, r.ids, salt, n) }

// Back seals one of the other.
func (r *Talk) Back(salt seal.Salt, n int) []byte {
	return sealed(r.back, seal.Swapped(r.ids), salt, n)
}

func sealed(s *seal.Sealing, ids [4]byte, salt seal.Salt, n int) []byte {
	plain := make([]byte, n)
	copy(plain, ids[:])
	return s.Seal(make([]byte, 0, seal.SealedSize(n)), plain, nil, &salt)
}
