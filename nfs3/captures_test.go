package nfs3_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/xdr"
)

// placed is what was written into memory of either side, by STag: how the capture shows it.
type placed map[uint32][]tagged

type tagged struct {
	to   uint64
	data []byte
}

// take returns n octets from an address on, and forgets them.
func (p placed) take(t *testing.T, stag uint32, to uint64, n int) []byte {
	b, done := make([]byte, n), 0
	for _, w := range p[stag] {
		if w.to >= to && w.to < to+uint64(n) {
			done += copy(b[w.to-to:], w.data)
		}
	}
	if delete(p, stag); done != n {
		t.Errorf("%d octets of %d are in the capture", done, n)
	}
	return b
}

// segment is memory of the caller, as a header of RPC-over-RDMA version 1 has it.
type segment struct {
	handle, length uint32
	offset         uint64
}

func segments(d *xdr.Decoder) (all []segment) {
	for range d.Count(256, 16) {
		all = append(all, segment{d.Uint32(), d.Uint32(), d.Uint64()})
	}
	return all
}

// rpcMessage is a message of ONC RPC, put together from what a capture shows of it.
type rpcMessage struct {
	xid    uint32
	reply  bool
	inline []byte
	items  []xdr.Item
}

// capturedMessages returns what passes in a capture, in its order.
func capturedMessages(t *testing.T, file string) (all []rpcMessage) {
	t.Helper()
	var (
		memory = placed{}
		reads  = map[uint32]rdmap.ReadHeader{} // by the STag of their source
		calls  []rpcMessage                    // whose Read chunk is being read
		chunks = map[uint32]segment{}          // those, by XID
		sent   [2][]byte
	)
	d := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
		switch {
		case e.Kind != iwarp.Frame:
		case e.Opcode == rdmap.Write || e.Opcode == rdmap.ReadResponse:
			memory[e.Header.STag] = append(memory[e.Header.STag], tagged{e.Header.TO, bytes.Clone(e.Payload)})
			for xid, c := range chunks {
				if read := reads[c.handle]; e.Opcode == rdmap.ReadResponse && e.Header.Last && read.SinkSTag == e.Header.STag {
					for i := range calls {
						if calls[i].xid == xid {
							calls[i].items[0].Data = memory.take(t, read.SinkSTag, read.SinkTO, int(c.length))
							all = append(all, calls[i])
						}
					}
					delete(chunks, xid)
				}
			}
		case e.Opcode == rdmap.ReadRequest:
			reads[e.Operands.Read.SourceSTag] = e.Operands.Read
		case e.Opcode == rdmap.Send || e.Opcode == rdmap.SendInvalidate:
			if sent[e.Way] = append(sent[e.Way], e.Payload...); !e.Header.Last {
				break
			}
			m, chunk := transportHeader(t, sent[e.Way], memory)
			sent[e.Way] = nil
			if chunk != nil {
				calls, chunks[m.xid] = append(calls, m), *chunk
			} else {
				all = append(all, m)
			}
		}
		return nil
	})
	for i, record := range records.Of(t, file) {
		if err := d.Add(i+1, &record); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.End(); err != nil || len(chunks) > 0 {
		t.Fatalf("%v, and %d calls lack their data", err, len(chunks))
	}
	return all
}

// transportHeader takes the header of RPC-over-RDMA version 1 from a Send. A Read chunk that it names
// is not read yet.
func transportHeader(t *testing.T, b []byte, memory placed) (m rpcMessage, chunk *segment) {
	var d xdr.Decoder
	d.Reset(b, nil)
	m.xid = d.Uint32()
	version, _, procedure := d.Uint32(), d.Uint32(), d.Uint32()
	position := 0
	for d.Bool() {
		position = int(d.Uint32())
		chunk = &segment{d.Uint32(), d.Uint32(), d.Uint64()}
	}
	var results, reply []segment
	for d.Bool() {
		results = append(results, segments(&d)...)
	}
	if d.Bool() {
		reply = segments(&d)
	}
	if d.Err() != nil || version != 1 || procedure > 1 {
		t.Fatalf("header %x: %v", b, d.Err())
	}
	m.inline = bytes.Clone(d.Left())
	if procedure == 1 {
		for _, s := range reply {
			m.inline = append(m.inline, memory.take(t, s.handle, s.offset, int(s.length))...)
		}
	}
	if m.reply = binary.BigEndian.Uint32(m.inline[4:]) == 1; m.reply {
		var data []byte
		for _, s := range results {
			if s.length > 0 {
				data = append(data, memory.take(t, s.handle, s.offset, int(s.length))...)
			}
		}
		if data != nil {
			m.items = []xdr.Item{{At: xdr.Floating, Data: data}}
		}
	}
	if chunk != nil {
		m.items = []xdr.Item{{At: position}}
	}
	return m, chunk
}

// arguments returns a decoder that is after the header of a call, and which procedure it is of.
func (m *rpcMessage) arguments(t *testing.T) (d xdr.Decoder, program, procedure uint32) {
	d.Reset(m.inline, m.items)
	d.Fixed(12) // xid, CALL, version 2
	program, _, procedure = d.Uint32(), d.Uint32(), d.Uint32()
	for range 2 { // credential and verifier
		d.Uint32()
		d.Opaque(400)
	}
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	return d, program, procedure
}

// results returns a decoder that is after the header of a reply, and whether it was carried out.
func (m *rpcMessage) results(t *testing.T) (d xdr.Decoder, ok bool) {
	d.Reset(m.inline, m.items)
	d.Fixed(8) // xid, REPLY
	accepted := d.Uint32() == 0
	d.Uint32()
	d.Opaque(400)
	success := d.Uint32() == 0
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	return d, accepted && success
}

// whole returns what a decoder has left, and the items after it.
func whole(d *xdr.Decoder, items []xdr.Item) []byte {
	b := bytes.Clone(d.Left())
	for _, i := range items {
		b = append(b, i.Data...)
	}
	return b
}

// TestCaptures checks that each call of Linux's client and each reply of Linux's nfsd is decoded, and
// encoded again to the same octets (NFSB-01, LX-22, LX-24, LX-25, LX-29).
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("../rpcrdma/testdata/v3-*.pcap.gz")
	if err != nil || len(files) < 8 {
		t.Fatalf("captures %v: %v", files, err)
	}
	seen := map[string]int{}
	for _, file := range files {
		procedures := map[uint32]uint32{} // of the calls, by XID
		for _, m := range capturedMessages(t, file) {
			var (
				d     xdr.Decoder
				value message
				name  string
			)
			if !m.reply {
				var program, procedure uint32
				d, program, procedure = m.arguments(t)
				if program != nfs3.Program.Number || procedure == nfs3.ProcNull {
					continue
				}
				procedures[m.xid] = procedure
				value, name = nfsTypes[procedure].args(), nfs3.Program.Procedures[procedure].Name+" call"
			} else {
				procedure, known := procedures[m.xid]
				if !known {
					continue // of NULL, or of another program
				}
				var ok bool
				if d, ok = m.results(t); !ok {
					t.Errorf("%s: the reply to %s is an error", file, nfs3.Program.Procedures[procedure].Name)
					continue
				}
				value, name = nfsTypes[procedure].results(), nfs3.Program.Procedures[procedure].Name+" reply"
			}
			want := whole(&d, m.items)
			value.UnmarshalXDR(&d)
			if err := d.Done(); err != nil || len(bytes.Trim(d.Left(), "\x00")) > 0 {
				t.Errorf("%s: %s: %v, % x is left", file, name, err, d.Left())
				continue
			}
			var e xdr.Encoder
			value.MarshalXDR(&e)
			got := e.Bytes()
			for _, i := range e.Items() {
				if m.items == nil { // it was inline
					got = xdr.AppendFlat(nil, e.Bytes(), e.Items())
					break
				}
				if i.At != len(e.Bytes()) {
					t.Errorf("%s: %s has an item at %d of %d", file, name, i.At, len(e.Bytes()))
				}
				got = append(bytes.Clone(got), i.Data...)
			}
			if !bytes.Equal(got, want[:min(len(want), len(got))]) || len(bytes.Trim(want[len(got):], "\x00")) > 0 {
				t.Errorf("%s: %s is\n% x, want\n% x", file, name, got, want)
			}
			seen[name]++
		}
	}
	for _, name := range []string{
		"GETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "SYMLINK", "REMOVE", "READDIRPLUS", "FSINFO", "PATHCONF", "COMMIT",
	} {
		if seen[name+" call"] == 0 || seen[name+" reply"] != seen[name+" call"] {
			t.Errorf("%d calls and %d replies of %s", seen[name+" call"], seen[name+" reply"], name)
		}
	}
	t.Log(seen)
}
