package rpc

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// fragment returns a fragment of a record.
func fragment(b []byte, last bool) []byte {
	n := uint32(len(b))
	if last {
		n |= markLast
	}
	return append(binary.BigEndian.AppendUint32(nil, n), b...)
}

// cut feeds a stream to records, in reads of lengths that next says, and returns what comes. Records are kept until the
// end of the stream if keep says so.
func cut(t testing.TB, r *records, stream []byte, read func(most int) int, keep func() bool) (got []record, err error) {
	var all []*memory
	defer func() {
		for i := range got {
			got[i].b = bytes.Clone(got[i].b) // others use what is released
		}
		for _, m := range all {
			m.release()
		}
		r.release()
	}()
	for len(stream) > 0 {
		space := r.space()
		if len(space) == 0 {
			t.Fatal("no space")
		}
		n := copy(space, stream[:min(read(len(space)), len(stream))])
		stream = stream[n:]
		r.received(n)
		for {
			rec, ok, err := r.next()
			if err != nil {
				return got, err
			}
			if !ok {
				break
			}
			if keep() {
				all = append(all, rec.mem)
			} else {
				rec.b = bytes.Clone(rec.b) // at once: the next octets go to the same place
				rec.mem.release()
			}
			got = append(got, rec)
		}
	}
	return got, nil
}

func freshMemory(_ []byte, n int) ([]byte, *memory) { return make([]byte, n), nil }

func pooledMemory(_ []byte, n int) ([]byte, *memory) {
	m := takeMemory(n)
	return m.b[:n:n], m
}

// TestRecords checks that a stream is cut into the records that were put into it, however they are fragmented and
// however the stream arrives, also while earlier records are still in use (ONC-007).
func TestRecords(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	d := rand.New(rand.NewPCG(seed, 0))
	lengths := []int{0, 4, 40, 1000, longFrom - 4, longFrom, chunkLength - 5, chunkLength - 4, chunkLength - 3, chunkLength, 3 * chunkLength, 1 << 18}
	for range fixture.Fewer(100, 30) {
		var stream []byte
		var want [][]byte
		for range 1 + d.IntN(20) {
			b := make([]byte, lengths[d.IntN(len(lengths))])
			if d.IntN(2) == 0 {
				b = b[:d.IntN(len(b)+1)]
			}
			for i := range b {
				b[i] = byte(d.Uint32())
			}
			want = append(want, b)
			for rest := b; ; {
				n := len(rest)
				if n > 1 && d.IntN(3) == 0 {
					n = 1 + d.IntN(n-1)
				}
				stream = append(stream, fragment(rest[:n], n == len(rest))...)
				if rest = rest[n:]; len(rest) == 0 {
					break
				}
			}
		}
		r := records{limit: 1 << 18, long: freshMemory}
		if d.IntN(2) == 0 {
			r.long = pooledMemory
		}
		small := d.IntN(2) == 0
		got, err := cut(t, &r, stream, func(most int) int {
			if small {
				return 1 + d.IntN(64)
			}
			return 1 + d.IntN(most)
		}, func() bool { return d.IntN(2) == 0 })
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d records, want %d: %v", len(got), len(want), err)
		}
		for i, rec := range got {
			if rec.tooLong > 0 || !bytes.Equal(rec.b, want[i]) {
				t.Fatalf("record %d has %d octets, want %d (or others)", i, len(rec.b), len(want[i]))
			}
		}
	}
}

// TestRecordsTooLong checks that of a record longer than the limit only the head is told, whether one fragment says so or several,
// and that no memory is taken for it; the next record is whole (ONC-007, ONC-008).
func TestRecordsTooLong(t *testing.T) {
	head := []byte("1234\x00\x00\x00\x00") // of a call
	rest := make([]byte, 5000)
	for name, stream := range map[string][]byte{
		"one fragment":       fragment(append(head, rest...), true),
		"several":            append(append(fragment(head, false), fragment(rest[:900], false)...), fragment(rest, true)...),
		"several after":      append(fragment(append(head, rest...), false), fragment(rest, true)...),
		"a head in two":      append(fragment(head[:3], false), fragment(append(head[3:], rest...), true)...),
		"just over":          append(fragment(append(head, rest[:992]...), false), fragment([]byte{1}, true)...),
		"nothing afterwards": append(fragment(append(head, rest[:992]...), false), append(fragment([]byte{1}, false), fragment(nil, true)...)...),
	} {
		for _, size := range []int{1, 3, 7, 100, 1 << 20} {
			r := records{limit: 1000, long: func([]byte, int) ([]byte, *memory) {
				t.Fatal("memory is taken")
				return nil, nil
			}}
			next := []byte("the next one")
			got, err := cut(t, &r, append(bytes.Clone(stream), fragment(next, true)...), func(int) int { return size }, func() bool { return false })
			if err != nil || len(got) != 2 {
				t.Fatalf("%s, %d octets at once: %d records, %v", name, size, len(got), err)
			}
			if got[0].tooLong <= 1000 || !bytes.HasPrefix(got[0].b, head) || got[1].tooLong > 0 || !bytes.Equal(got[1].b, next) {
				t.Errorf("%s, %d octets at once: %q, %q", name, size, got[0].b, got[1].b)
			}
		}
	}
}

// TestRecordsEmptyFragment checks that an empty fragment ends the stream unless it is the last one (ONC-007).
func TestRecordsEmptyFragment(t *testing.T) {
	for name, stream := range map[string][]byte{
		"at the beginning": fragment(nil, false),
		"later":            append(fragment([]byte("1234"), false), fragment(nil, false)...),
		"too long":         append(append(fragment(make([]byte, 999), false), fragment(make([]byte, 999), false)...), fragment(nil, false)...),
	} {
		r := records{limit: 1000, long: freshMemory}
		if _, err := cut(t, &r, stream, func(most int) int { return most }, func() bool { return false }); err != errEmptyFragment {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLengthTakesNoMemory checks that memory for a long record is taken when a part of it has come, not for its
// length (ONC-007).
func TestLengthTakesNoMemory(t *testing.T) {
	taken := false
	r := records{limit: 1 << 20, long: func(_ []byte, n int) ([]byte, *memory) {
		taken = true
		return make([]byte, n), nil
	}}
	defer r.release()
	stream := fragment(make([]byte, 1<<20), true)
	for i := range longFrom + markLength {
		if taken {
			t.Fatalf("memory is taken after %d octets", i)
		}
		r.space()[0] = stream[i]
		r.received(1)
		r.next()
	}
	if !taken {
		t.Error("no memory is taken")
	}
}

// FuzzRecord checks that no stream has records that are longer than they may be, and that records are the same however the stream
// arrives. Streams and records are short: go test makes each input of use shorter, octet by octet, for up to a minute, and runs no
// others as long.
func FuzzRecord(f *testing.F) {
	const limit = 40
	f.Add(fragment([]byte("12345678"), true), uint16(3))
	f.Add(append(fragment([]byte("1234"), false), fragment([]byte("5678"), true)...), uint16(1))
	f.Add(fragment(nil, false), uint16(9))
	f.Add(fragment(make([]byte, 2*limit), true), uint16(30))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		r := records{limit: limit, long: freshMemory}
		once, err := cut(t, &r, stream, func(most int) int { return most }, func() bool { return true })
		total := 0
		for _, rec := range once {
			total += len(rec.b)
			if len(rec.b) > limit && rec.tooLong == 0 {
				t.Fatalf("a record of %d octets", len(rec.b))
			}
		}
		if total > len(stream) {
			t.Fatalf("%d octets of %d", total, len(stream))
		}
		r = records{limit: limit, long: freshMemory}
		again, err2 := cut(t, &r, stream, func(int) int { return max(int(size), 1) }, func() bool { return false })
		if (err == nil) != (err2 == nil) || len(again) != len(once) {
			t.Fatalf("read otherwise: %d records and %v, %d and %v", len(once), err, len(again), err2)
		}
		for i := range once {
			if once[i].tooLong != again[i].tooLong || once[i].tooLong == 0 && !bytes.Equal(once[i].b, again[i].b) {
				t.Fatalf("record %d differs", i)
			}
		}
	})
}
