package iwarp

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
)

// TestPending compares what is pending with a plain list, in which each answer looks for its request from the front.
func TestPending(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	asks := []rdmap.Opcode{rdmap.ReadRequest, rdmap.AtomicRequest, rdmap.FlushRequest}
	for range 200 {
		var p pending
		var list []Request
		for n := range 400 {
			op := asks[rnd.IntN(len(asks))]
			answer, _ := op.Answer()
			if rnd.IntN(5) < 3 {
				r := Request{Opcode: op, MSN: uint32(n), Whole: rnd.IntN(8) > 0, ID: rnd.Uint32N(6)}
				r.Read.SinkSTag, r.Read.Size = rnd.Uint32N(3), rnd.Uint32N(3)
				p.add(r)
				list = append(list, r)
				continue
			}
			k, any := what{known: true, id: rnd.Uint32N(6)}, rnd.IntN(3) == 0
			if op == rdmap.ReadRequest {
				k = what{known: true, stag: rnd.Uint32N(3), size: uint64(rnd.Uint32N(3))}
			} else if op == rdmap.FlushRequest {
				any = true
			}
			at := slices.IndexFunc(list, func(r Request) bool {
				return r.Opcode == op && (any || !r.Whole || whatOf(&r) == k)
			})
			var r Request
			var ok bool
			if any {
				r, ok = p.oldest(answer)
			} else {
				r, ok = p.fitting(answer, k)
			}
			if ok != (at >= 0) || ok && r.MSN != list[at].MSN {
				t.Fatalf("found %v, request %d, want %d of %d", ok, r.MSN, at, len(list))
			}
			if ok {
				list = append(slices.DeleteFunc(slices.Clone(list[:at]), func(r Request) bool { return r.Opcode == op }), list[at+1:]...)
			}
			if p.waiting != len(list) || !slices.EqualFunc(p.all(), list, func(a, b Request) bool { return a.MSN == b.MSN }) {
				t.Fatalf("%d wait, want %d", p.waiting, len(list))
			}
		}
	}
}

// untagged is a frame of an untagged message of one segment.
func untagged(control byte, queue, msn uint32, operands []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(18+len(operands)))
	b = append(b, 0x41, control, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, queue)
	b = binary.BigEndian.AppendUint32(b, msn)
	b = append(append(b, 0, 0, 0, 0), operands...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// TestAnswersBehindManyRequests checks that an answer costs the same however many requests wait, whether it fits one of them or none (F8).
func TestAnswersBehindManyRequests(t *testing.T) {
	for name, stag := range map[string]uint32{"none fits": 1 << 30, "each fits": 0} {
		looked := func(answers int) (n int) {
			var c *Connection
			said := 0
			d := New(Options{}, func(e *Event) error {
				c = e.Conn
				if e.Answers != nil {
					said++
				}
				return nil
			})
			f := &feeder{d: d, port: 1}
			f.syn()
			f.say(0, setUp("MPA ID Req Frame", crcBit))
			f.say(1, setUp("MPA ID Rep Frame", crcBit))
			for i := range uint32(MostRequests + 1) { // one more than are followed: then answers go with what they fit
				read := make([]byte, 28)
				binary.BigEndian.PutUint32(read, i)
				f.say(0, untagged(0x41, 1, i+1, read))
			}
			for i := range uint32(answers) {
				b := []byte{0, 14, 0xc1, 0x42}
				b = binary.BigEndian.AppendUint32(b, stag+i)
				b = append(b, make([]byte, 8)...)
				f.say(1, binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
			}
			if fits := stag == 0; fits && said != answers || !fits && said != 0 {
				t.Errorf("%s: %d of %d answers have a request", name, said, answers)
			}
			return c.ways[0].requests.looked
		}
		if a, b := looked(1000), looked(2000); a > 1000 || b > 2000 {
			t.Errorf("%s: 1000 answers looked at %d requests, 2000 at %d", name, a, b)
		}
	}
}
