package rpcrdma

import (
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// Procedures of NFS 3 whose arguments or results have file data.
const (
	nfs3Read  = 6
	nfs3Write = 7

	nfs3Commit = 21
)

// Sizes of NFS 3.
const (
	maxHandle = 64
	attrSize  = 84
)

// leastData is how much data in a message is told of that could have been placed. Arbitrary: to register memory for less costs
// more than to copy it.
const leastData = 1024

// written returns the length of the data that a WRITE of NFS 3 or 4 has among its arguments, by the length word before it.
func (c *Call) written() (n uint64, ok bool) {
	if c.inline4 > 0 {
		return c.inline4, true
	}
	if !c.Known || c.Program != nfs || c.ProgramVersion != 3 || c.Procedure != nfs3Write || c.args == nil {
		return 0, false
	}
	var d xdr.Decoder
	d.Reset(c.args, nil)
	d.Opaque(maxHandle)
	d.Uint64()
	d.Uint32()
	d.Uint32()
	n = uint64(d.Uint32())
	return n, d.Err() == nil
}

// read returns the length of the data that the results of a READ of NFS 3 have, likewise.
func (s *Status) read(of *RPC) (n uint64, ok bool) {
	if !s.Success() || !s.HasResult || s.Result != 0 || of.Program != nfs || of.ProgramVersion != 3 || of.Procedure != nfs3Read {
		return 0, false
	}
	var d xdr.Decoder
	d.Reset(s.results, nil)
	d.Uint32()
	if d.Bool() {
		d.Fixed(attrSize)
	}
	d.Uint32() // count
	d.Bool()   // end of file
	n = uint64(d.Uint32())
	return n, d.Err() == nil
}

// verifier finds that a server says another write verifier than before, on any connection of the same client: it has lost what was not committed.
func (m *Message) verifier(k *Call) {
	s, p := &m.Status, m.Conn.pair
	if p == nil || !s.Success() || !s.HasResult || s.Result != 0 || !k.isNFS3(nfs3Write) && !k.isNFS3(nfs3Commit) {
		return
	}
	var r fieldReader
	r.Reset(s.results, nil)
	r.Uint32()
	if r.Bool() {
		r.Fixed(24)
	}
	if r.Bool() {
		r.Fixed(attrSize)
	}
	if k.Procedure == nfs3Write {
		r.Uint64() // count, and how safe the data are
	}
	v := r.Uint64()
	if r.Err() != nil || m.Late {
		return
	}
	if p.verified != 0 && v != p.verifier {
		m.Conn.found(Restarted, m, p.verified, 0, fmt.Sprintf("0x%016x and then 0x%016x", p.verifier, v))
	}
	p.verifier, p.verified = v, m.Last.Record
}
