package rpc

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/rpcrdma"
)

// errorOf returns what an error of the machine means for the caller, with what helps if this side can do something.
func (r *rdmaOutgoing) errorOf() error {
	if long := (*rpcrdma.LongReplyError)(nil); errors.As(r.Err, &long) {
		return r.of.longReply(long.Length, long.Most)
	}
	var refused *rpcrdma.PeerError
	if !errors.As(r.Err, &refused) {
		return r.Err
	}
	room := 0
	if r.Into != nil {
		room = len(r.Into[0])
	}
	has := fmt.Sprintf("Into has %d octets, MaxResults is %d: give a longer Into, or raise MaxResults", room, r.of.maxResults)
	switch {
	case r.of.anyLength:
		has = fmt.Sprintf("there is no Into, MaxReply is %d: raise ClientOptions.MaxReply, or give an Into", r.conn.config.MaxReply)
	case room == 0:
		has = fmt.Sprintf("MaxResults is %d: raise it, of the procedure or of the call", r.of.maxResults)
	}
	switch report := refused.Report; {
	case refused.Version == rpcrdma.Version1 && report.Code == rpcrdma.CodeChunk && len(r.Items) == 0:
		return fmt.Errorf("%w: what it needs is not known, %s (%w)", ErrTooLong, has, r.Err)
	case refused.Version == rpcrdma.Version1 && report.Code == rpcrdma.CodeChunk:
		return fmt.Errorf("%w, or the server takes no such arguments: %s (%w)", ErrTooLong, has, r.Err)
	case report.Code == rpcrdma.CodeWriteResource:
		return fmt.Errorf("%w: an item of %d octets, Into has %d: give a longer Into (%w)", ErrTooLong, report.Needed, room, r.Err)
	case report.Code == rpcrdma.CodeReplyResource:
		return fmt.Errorf("%w: %d octets, %s (%w)", ErrTooLong, report.Needed, has, r.Err)
	case refused.Version == rpcrdma.Version2 && report.Code == rpcrdma.CodeSystem:
		return fmt.Errorf("%w (%w)", ErrSystem, r.Err)
	case report.Code == rpcrdma.CodeBadXDR && len(r.Items) > 0:
		return fmt.Errorf("%w: the server may have another table: compare BulkArgs", r.Err)
	}
	return r.Err
}
