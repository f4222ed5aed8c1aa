package rpcrdma

import "github.com/dgrdma/dgrdma/xdr"

// Procedures of NFS 3 whose arguments or results have file data.
const (
	nfs3Read  = 6
	nfs3Write = 7
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
