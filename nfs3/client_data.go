package nfs3

import (
	"context"
	"fmt"

	"github.com/dgrdma/dgrdma/rpc"
)

// Read is the method of FS. Over RDMA the server writes the data into dst itself: when ctx ends, Read waits for its reply, or for the end
// of the connection. It is several calls, one after the
// other, if dst is longer than the server reads at once; [File] has several calls under way.
func (c *Client) Read(ctx context.Context, cred *Cred, h Handle, dst []byte, offset uint64) (n int, eof bool, err error) {
	var call struct { // memory is taken once
		args   ReadArgs
		result ReadResult
		o      rpc.CallOptions
	}
	r := &call.result
	for n < len(dst) && !eof {
		part := dst[n:][:min(len(dst)-n, int(min(c.info.ReadMax, MaxData)))]
		call.args, call.result, call.o = ReadArgs{h, offset + uint64(n), uint32(len(part))}, ReadResult{}, rpc.CallOptions{Into: part, Direct: true}
		if err := c.do(ctx, cred, ProcRead, &call.args, r, &call.o); err != nil {
			return n, false, err
		}
		if len(r.Data) > len(part) || len(r.Data) == 0 && !r.EOF {
			return n, false, fmt.Errorf("READ: the server returned %d octets for %d, and no end", len(r.Data), len(part))
		}
		if len(r.Data) > 0 && &r.Data[0] != &part[0] {
			copy(part, r.Data)
		}
		n, eof = n+len(r.Data), r.EOF
	}
	return n, eof, nil
}

// Write is the method of FS. Over RDMA the server reads the data itself: when ctx ends, Write waits as Read does. It writes all of the data, unless the server cannot, by several calls if
// it is long. If the server has restarted in between, the verifier of the result is 0, which means that
// some of it may be lost.
func (c *Client) Write(ctx context.Context, cred *Cred, h Handle, data []byte, offset uint64, stable Stable) (Written, WCC, error) {
	if c.info.WriteMax == 0 {
		return Written{}, WCC{}, fmt.Errorf("FSINFO: the server writes nothing: %w", ErrROFS)
	}
	sum := Written{Stable: FileSync}
	var w WCC
	var call struct { // memory is taken once
		args   WriteArgs
		result WriteResult
		o      rpc.CallOptions
	}
	r := &call.result
	for first := true; first || int(sum.Count) < len(data); first = false {
		part := data[sum.Count:][:min(len(data)-int(sum.Count), int(min(c.info.WriteMax, MaxData)))]
		call.args, call.result, call.o = WriteArgs{h, offset + uint64(sum.Count), stable, part}, WriteResult{}, rpc.CallOptions{Direct: true}
		err := c.do(ctx, cred, ProcWrite, &call.args, r, &call.o)
		if err == nil && (int(r.Written.Count) > len(part) || r.Written.Count == 0 && len(part) > 0 || r.Written.Stable < stable) {
			err = fmt.Errorf("WRITE: the server has written %d octets of %d, %v; wanted %v", r.Written.Count, len(part), r.Written.Stable, stable)
		}
		if err != nil {
			if first {
				return Written{}, r.WCC, err
			}
			return sum, w, nil // the caller writes the rest, and hears of it then
		}
		if w.After = r.WCC.After; first {
			w.Before, sum.Verifier = r.WCC.Before, r.Written.Verifier
		} else if sum.Verifier != r.Written.Verifier {
			sum.Verifier = 0
		}
		sum.Count += r.Written.Count
		sum.Stable = min(sum.Stable, r.Written.Stable)
	}
	return sum, w, nil
}

// Commit is the method of FS.
func (c *Client) Commit(ctx context.Context, cred *Cred, h Handle, offset uint64, count uint32) (uint64, WCC, error) {
	var r CommitResult
	err := c.do(ctx, cred, ProcCommit, &CommitArgs{h, offset, count}, &r, nil)
	return r.Verifier, r.WCC, err
}
