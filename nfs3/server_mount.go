package nfs3

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/rpc"
)

// export returns the path under which the root is mounted.
func (s *Server) export() string { return path.Clean("/" + s.o.Export) }

// serveMount carries out a call of MOUNT. The server does not remember what is mounted: DUMP tells of
// nothing, and unmounting does nothing.
func (s *Server) serveMount(ctx context.Context, c *rpc.Call) error {
	if s.o.Done == nil {
		return s.carryOutMount(ctx, c, nil)
	}
	served := &Served{Call: c}
	began := time.Now()
	err := s.carryOutMount(ctx, c, served)
	s.done(served, began, err)
	return err
}

func (s *Server) carryOutMount(ctx context.Context, c *rpc.Call, served *Served) error {
	switch c.Procedure {
	case MountMnt:
		var a MountPath
		if err := c.Decode(&a); err != nil {
			return err
		}
		root, err := s.mount(ctx, a.Path)
		r := &MountResult{mountStatus(err), root, []uint32{uint32(rpc.FlavorSys), uint32(rpc.FlavorNone)}}
		s.counters.carried(r.Status)
		if r.Status == ErrIO && s.o.Failed != nil {
			s.o.Failed("MNT", err)
		}
		if served != nil {
			served.Name, served.Found, served.Status = a.Path, r.Root, r.Status
		}
		return c.Reply(r)
	case MountDump:
		return c.Reply(&MountList{})
	case MountUmnt, MountUmntAll:
		return nil
	case MountExport:
		return c.Reply(&ExportList{{Path: s.export()}})
	}
	return rpc.ErrProcedureUnavailable
}

// mount returns the handle of the export's root, or of a directory below.
func (s *Server) mount(ctx context.Context, name string) (Handle, error) {
	rest, ok := strings.CutPrefix(path.Clean("/"+name), s.export())
	if !ok || s.export() != "/" && rest != "" && rest[0] != '/' {
		return "", ErrNoEnt
	}
	at, err := s.fs.Root(ctx)
	for name := range strings.SplitSeq(rest, "/") {
		if err == nil && name != "" {
			at, err = s.fs.Lookup(ctx, nil, at.Handle, name)
		}
	}
	if err == nil && at.Attr.Type != TypeDirectory {
		err = ErrNotDir
	}
	return at.Handle, err
}

// mountStatus returns a status that MOUNT has for err.
func mountStatus(err error) Status {
	switch s := StatusOf(err); s {
	case OK, ErrPerm, ErrNoEnt, ErrIO, ErrAcces, ErrNotDir, ErrInval, ErrNameTooLong, ErrNotSupp, ErrServerFault:
		return s
	case ErrStale:
		return ErrNoEnt
	}
	return ErrServerFault
}
