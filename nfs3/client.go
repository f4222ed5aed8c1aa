package nfs3

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// ClientOptions are what a [Client] can be told. The zero value is usual.
type ClientOptions struct {
	// Auth is the credential of calls that are for no Cred. nil: AUTH_SYS, with user and groups of the
	// process.
	Auth *rpc.Auth
	// MountAddress is where the server of MOUNT is, as with [rpc.Dial]. "": at the address of NFS.
	MountAddress string
	// RPC are options of the connection. nil: the usual ones, and calls are sent again after a lost
	// connection: servers of NFS keep their replies. Over TCP the connection is from a port below 1024 if the process may have one.
	RPC *rpc.ClientOptions
}

// Client calls a server of NFS version 3. It is an [FS]: each method is one procedure, but that Read and
// Write may take several calls. A Cred becomes a credential of flavor AUTH_SYS; nil is that of
// [ClientOptions.Auth].
//
// A status of the server is in the chain of the errors, and others are those of package rpc.
type Client struct {
	rpc     *rpc.Client
	own     *rpc.Binding
	machine string
	root    Handle
	info    FSInfo
	dialed  bool
}

// Dial connects to a server, as [rpc.Dial] does ("tcp:HOST:2049", "rdma:HOST:20049"), and mounts a directory that it
// exports.
func Dial(ctx context.Context, address, path string, o *ClientOptions) (*Client, error) {
	var options ClientOptions
	if o != nil {
		options = *o
	}
	if options.RPC == nil {
		options.RPC = &rpc.ClientOptions{Resend: true, ReservedPort: true}
	}
	r, err := rpc.Dial(ctx, address, options.RPC)
	if err != nil {
		return nil, err
	}
	mounting := r
	if options.MountAddress != "" {
		if mounting, err = rpc.Dial(ctx, options.MountAddress, options.RPC); err != nil {
			r.Close()
			return nil, err
		}
		defer mounting.Close()
	}
	root, err := Mount(ctx, mounting, path, options.auth())
	if err == nil {
		var c *Client
		if c, err = NewClient(ctx, r, root, &options); err == nil {
			c.dialed = true
			return c, nil
		}
	}
	r.Close()
	return nil, err
}

// NewClient returns a client of the server that r is connected to, for the file system of a directory whose
// handle is root ([Mount] returns it).
func NewClient(ctx context.Context, r *rpc.Client, root Handle, o *ClientOptions) (*Client, error) {
	if o == nil {
		o = new(ClientOptions)
	}
	machine, _ := os.Hostname()
	c := &Client{rpc: r, own: r.Bind(Program, o.auth()), machine: machine, root: root}
	info, err := c.FSInfo(ctx, nil, root)
	if err != nil {
		return nil, err
	}
	if info.ReadMax == 0 {
		return nil, errors.New("FSINFO: the server reads nothing")
	}
	c.info = info
	return c, nil
}

// Close closes the connection of a client that [Dial] has returned.
func (c *Client) Close() error {
	if c.dialed {
		return c.rpc.Close()
	}
	return nil
}

// auth returns the credential of calls that are for no Cred.
func (o *ClientOptions) auth() rpc.Auth {
	if o.Auth != nil {
		return *o.Auth
	}
	return rpc.ProcessSys().Auth()
}

// outcome is a result: it has a status.
type outcome interface {
	xdr.Unmarshaler
	status() Status
}

func (r *GetAttrResult) status() Status     { return r.Status }
func (r *ChangeResult) status() Status      { return r.Status }
func (r *LookupResult) status() Status      { return r.Status }
func (r *AccessResult) status() Status      { return r.Status }
func (r *ReadLinkResult) status() Status    { return r.Status }
func (r *ReadResult) status() Status        { return r.Status }
func (r *WriteResult) status() Status       { return r.Status }
func (r *CommitResult) status() Status      { return r.Status }
func (r *CreateResult) status() Status      { return r.Status }
func (r *RenameResult) status() Status      { return r.Status }
func (r *LinkResult) status() Status        { return r.Status }
func (r *ReadDirResult) status() Status     { return r.Status }
func (r *ReadDirPlusResult) status() Status { return r.Status }
func (r *FSStatResult) status() Status      { return r.Status }
func (r *FSInfoResult) status() Status      { return r.Status }
func (r *PathConfResult) status() Status    { return r.Status }

// do carries out a procedure for c.
func (c *Client) do(ctx context.Context, cred *Cred, procedure uint32, args xdr.Marshaler, results outcome, o *rpc.CallOptions) error {
	b := c.own
	if cred != nil {
		b = c.rpc.Bind(Program, (&rpc.Sys{Machine: c.machine, UID: cred.UID, GID: cred.GID, GIDs: cred.GIDs}).Auth())
	}
	if err := b.Call(ctx, procedure, args, results, o); err != nil {
		return err
	}
	if s := results.status(); s != OK {
		return fmt.Errorf("%s: %w", Program.Procedures[procedure].Name, s)
	}
	return nil
}

// checkName refuses a name that servers need not decode: Linux's answers it by GARBAGE_ARGS. What else is wrong with a name, the server
// says.
func checkName(procedure uint32, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%s %.40q: %w", Program.Procedures[procedure].Name, name, ErrNameTooLong)
	}
	return nil
}

// object returns an object that a procedure has found or made. A server may leave out its handle or
// attributes; then they are asked for.
func (c *Client) object(ctx context.Context, cred *Cred, dir Handle, name string, h PostHandle, a PostAttr) (Object, error) {
	if !h.Present {
		return c.Lookup(ctx, cred, dir, name)
	}
	if a.Present {
		return Object{h.Handle, a.Attr}, nil
	}
	attr, err := c.GetAttr(ctx, cred, h.Handle)
	return Object{h.Handle, attr}, err
}

// Root is the method of FS.
func (c *Client) Root(ctx context.Context) (Object, error) {
	a, err := c.GetAttr(ctx, nil, c.root)
	return Object{c.root, a}, err
}

// GetAttr is the method of FS.
func (c *Client) GetAttr(ctx context.Context, cred *Cred, h Handle) (Attr, error) {
	var r GetAttrResult
	err := c.do(ctx, cred, ProcGetAttr, &GetAttrArgs{h}, &r, nil)
	return r.Attr, err
}

// SetAttr is the method of FS.
func (c *Client) SetAttr(ctx context.Context, cred *Cred, h Handle, set *SetAttr, guard *Time) (WCC, error) {
	var r ChangeResult
	err := c.do(ctx, cred, ProcSetAttr, &SetAttrArgs{h, *set, guard}, &r, nil)
	return r.WCC, err
}

// Lookup is the method of FS.
func (c *Client) Lookup(ctx context.Context, cred *Cred, dir Handle, name string) (Object, error) {
	if err := checkName(ProcLookup, name); err != nil {
		return Object{}, err
	}
	var r LookupResult
	if err := c.do(ctx, cred, ProcLookup, &LookupArgs{DirName{dir, name}}, &r, nil); err != nil {
		return Object{}, err
	}
	return c.object(ctx, cred, dir, name, PostHandle{true, r.Object}, r.Attr)
}

// Access is the method of FS.
func (c *Client) Access(ctx context.Context, cred *Cred, h Handle, want Access) (Access, error) {
	var r AccessResult
	err := c.do(ctx, cred, ProcAccess, &AccessArgs{h, want}, &r, nil)
	return r.Access & want, err
}

// ReadLink is the method of FS.
func (c *Client) ReadLink(ctx context.Context, cred *Cred, h Handle) (string, error) {
	var r ReadLinkResult
	into := make([]byte, MaxTarget)
	err := c.do(ctx, cred, ProcReadLink, &ReadLinkArgs{h}, &r, &rpc.CallOptions{Into: into})
	return string(r.Target), err
}

// FSStat is the method of FS.
func (c *Client) FSStat(ctx context.Context, cred *Cred, h Handle) (FSStat, error) {
	var r FSStatResult
	err := c.do(ctx, cred, ProcFSStat, &FSArgs{h}, &r, nil)
	return r.Stat, err
}

// FSInfo is the method of FS.
func (c *Client) FSInfo(ctx context.Context, cred *Cred, h Handle) (FSInfo, error) {
	var r FSInfoResult
	err := c.do(ctx, cred, ProcFSInfo, &FSArgs{h}, &r, nil)
	return r.Info, err
}

// PathConf is the method of FS.
func (c *Client) PathConf(ctx context.Context, cred *Cred, h Handle) (PathConf, error) {
	var r PathConfResult
	err := c.do(ctx, cred, ProcPathConf, &FSArgs{h}, &r, nil)
	return r.Conf, err
}
