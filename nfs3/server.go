package nfs3

import (
	"context"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// Squash says which callers are taken for [ServerOptions.Anonymous].
type Squash int

// Which callers.
const (
	SquashRoot Squash = iota // user 0, and callers without AUTH_SYS; of other users, group 0 is that of Anonymous
	SquashNone               // only callers without AUTH_SYS
	SquashAll                // all
)

// ServerOptions are what a [Server] can be told. The zero value is usual.
type ServerOptions struct {
	// Export is the path under which clients mount the root. "": "/". They may mount a directory below as
	// well, which does not keep them there: handles and ".." reach all that the FS has.
	Export string
	// ReadOnly has all changes fail with ErrROFS.
	ReadOnly bool
	// Squash says which callers are not the user that they claim to be. AUTH_SYS proves nothing: without
	// SquashAll, a caller that reaches the server may be any user.
	Squash Squash
	// Anonymous is the user that they are instead. nil: user and group 65534.
	Anonymous *Cred
	// Failed hears of errors that a client is told as ErrIO, without their words. It may not block.
	Failed func(procedure string, err error)
	// Done hears of each call that was carried out, but for NULL. What it is told is for the time of the call. It may not block. nil: no time
	// is taken.
	Done func(*Served)
}

// Server serves an [FS] by NFS version 3 and MOUNT version 3.
type Server struct {
	fs FS
	o  ServerOptions

	counters serverCounters
}

// NewServer returns a server for an FS. Register has it serve.
func NewServer(fs FS, o *ServerOptions) *Server {
	s := &Server{fs: fs}
	if o != nil {
		s.o = *o
	}
	if s.o.Anonymous == nil {
		s.o.Anonymous = &Cred{UID: 65534, GID: 65534}
	}
	return s
}

// Register has both programs of s served by r.
func (s *Server) Register(r *rpc.Server) {
	r.Handle(Program, rpc.HandlerFunc(s.serve))
	r.Handle(MountProgram, rpc.HandlerFunc(s.serveMount))
}

// operation is one call of NFS, with what its procedures need.
type operation struct {
	*Server
	ctx  context.Context
	call *rpc.Call
	cred *Cred

	served *Served // nil: without ServerOptions.Done
}

// serve carries out a call of NFS.
func (s *Server) serve(ctx context.Context, c *rpc.Call) error {
	o := &operation{Server: s, ctx: ctx, call: c}
	if s.o.Done == nil {
		return o.carryOut()
	}
	o.served = &Served{Call: c}
	began := time.Now()
	err := o.carryOut()
	s.done(o.served, began, err)
	return err
}

// done says what came of a call.
func (s *Server) done(served *Served, began time.Time, err error) {
	served.Err, served.Took = err, time.Since(began)
	s.o.Done(served)
}

// carryOut carries out an operation.
func (o *operation) carryOut() (err error) {
	s := o.Server
	if o.cred, err = s.cred(o.call.Auth); err != nil {
		return err
	}
	if o.served != nil {
		o.served.Cred = o.cred
	}
	switch o.call.Procedure {
	case ProcGetAttr:
		return o.getAttr()
	case ProcSetAttr:
		return o.setAttr()
	case ProcLookup:
		return o.lookup()
	case ProcAccess:
		return o.access()
	case ProcReadLink:
		return o.readLink()
	case ProcRead:
		return o.read()
	case ProcWrite:
		return o.write()
	case ProcCreate:
		return o.create()
	case ProcMkdir:
		return o.mkdir()
	case ProcSymlink:
		return o.symlink()
	case ProcMknod:
		return o.mknod()
	case ProcRemove:
		return o.remove(s.fs.Remove)
	case ProcRmdir:
		return o.remove(s.fs.Rmdir)
	case ProcRename:
		return o.rename()
	case ProcLink:
		return o.link()
	case ProcReadDir:
		return o.readDir()
	case ProcReadDirPlus:
		return o.readDirPlus()
	case ProcFSStat:
		return o.fsStat()
	case ProcFSInfo:
		return o.fsInfo()
	case ProcPathConf:
		return o.pathConf()
	case ProcCommit:
		return o.commit()
	}
	return rpc.ErrProcedureUnavailable
}

// sysCreds are credentials to decode into. The next one mostly is of the same machine.
var sysCreds = sync.Pool{New: func() any { return new(rpc.Sys) }}

// cred returns for whom a call is done.
func (s *Server) cred(a rpc.Auth) (*Cred, error) {
	if a.Flavor == rpc.FlavorNone || s.o.Squash == SquashAll {
		return s.o.Anonymous, nil
	}
	sys := sysCreds.Get().(*rpc.Sys)
	defer sysCreds.Put(sys)
	if err := sys.Take(a); err != nil {
		return nil, err
	}
	if sys.UID == 0 && s.o.Squash == SquashRoot {
		return s.o.Anonymous, nil
	}
	c := &struct {
		Cred
		gids [16]uint32 // as many as AUTH_SYS has
	}{Cred: Cred{UID: sys.UID, GID: sys.GID}}
	c.GIDs = append(c.gids[:0], sys.GIDs...)
	if s.o.Squash == SquashRoot {
		c.leaveGroup0(s.o.Anonymous.GID)
	}
	return &c.Cred, nil
}

// leaveGroup0 has c be of another group where it is of group 0, which has rights of its own at many files.
func (c *Cred) leaveGroup0(gid uint32) {
	if c.GID == 0 {
		c.GID = gid
	}
	for i := range c.GIDs {
		if c.GIDs[i] == 0 {
			c.GIDs[i] = gid
		}
	}
}

// decode decodes the arguments.
func (o *operation) decode(args xdr.Unmarshaler) error {
	err := o.call.Decode(args)
	if err == nil && o.served != nil {
		o.served.take(args)
	}
	return err
}

// reply ends an operation.
func (o *operation) reply(results xdr.Marshaler) error { return o.call.Reply(results) }

// status returns what a client is told of err.
func (o *operation) status(err error) Status {
	status := StatusOf(err)
	o.counters.carried(status)
	if o.served != nil {
		o.served.Status = status
	}
	if status == ErrIO && o.o.Failed != nil {
		o.o.Failed(Program.Procedures[o.call.Procedure].Name, err)
	}
	return status
}

// post returns the attributes of an object after an operation, if it has any.
func (o *operation) post(h Handle) PostAttr {
	a, err := o.fs.GetAttr(o.ctx, o.cred, h)
	return PostAttr{err == nil, a}
}

// complete gives a WCC what the FS has left out.
func (o *operation) complete(w *WCC, h Handle) {
	if !w.After.Present {
		w.After = o.post(h)
	}
}

// writable returns ErrROFS if nothing may be changed.
func (o *operation) writable() error {
	if o.o.ReadOnly {
		return ErrROFS
	}
	return nil
}
