package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// nfsWait is for how long a server may not answer. Arbitrary: long for a server that is started again, short for a person.
const nfsWait = 10 * time.Second

// nfsAbout is what help says of addresses.
const nfsAbout = `An address is rdma:HOST/PATH or tcp:HOST/PATH, where PATH begins with that of an export. The
port is 20049 for rdma and 2049 for tcp, unless HOST is followed by another one, as in
rdma:10.0.0.2:2050/export and rdma:[fd00::2]:2050/export. Where the server says nothing of
its exports at that port, HOST's port mapper is asked for MOUNT, as with Linux's server.

Calls are those of the user who runs the command. As root they come over TCP from a port
below 1024, which Linux's server asks for unless its export has the option insecure.`

// nfsFlags are what commands that read and write files of a server have in common.
type nfsFlags struct {
	wait time.Duration
	over versionFlag
}

func (f *nfsFlags) register(fs *flag.FlagSet) {
	fs.DurationVar(&f.wait, "wait", nfsWait, "for how long the server may not answer, from 1s to 1h; until then a lost connection is made again")
	f.over.register(fs)
}

func (f *nfsFlags) check() error {
	if f.wait < time.Second || f.wait > time.Hour {
		return badUsage("--wait %v: need 1s to 1h", f.wait)
	}
	return f.over.check()
}

// options are those of connections that may be lost for --wait.
func (f *nfsFlags) options() *rpc.ClientOptions {
	// The time limit of a silent connection is met up to half of it late.
	return &rpc.ClientOptions{Timeout: f.wait * 2 / 3, GiveUp: f.wait, Resend: true, ReservedPort: true, Versions: f.over.versions()}
}

// nfsServerAt is a connection to a server of NFS, and another one to its MOUNT if that is elsewhere.
type nfsServerAt struct {
	at      nfsAddress // with the port
	wait    time.Duration
	nfs     *rpc.Client
	mount   *rpc.Client
	exports []nfs3.Export
	mounted bool // the server takes calls of this machine
	end     func() bool
}

// dialNFS connects to a server, and asks what it exports.
func (f *nfsFlags) dialNFS(ctx context.Context, at nfsAddress) (*nfsServerAt, error) {
	if err := f.over.of(at.rpcAddress); err != nil {
		return nil, err
	}
	s := &nfsServerAt{at: at, wait: f.wait}
	soon, stop := context.WithTimeout(ctx, f.wait)
	defer stop()
	err := s.dial(soon, f.options())
	if err == nil {
		s.exports, err = s.askExports(soon, f.options())
	}
	if err != nil {
		s.close()
		return nil, s.explain(ctx, s.at.rpcAddress.String(), err)
	}
	return s, nil
}

// dial connects to NFS, at its usual port or where the port mapper says.
func (s *nfsServerAt) dial(ctx context.Context, o *rpc.ClientOptions) (err error) {
	asked := s.at.port != ""
	if !asked {
		s.at.port = map[string]string{"rdma": strconv.Itoa(nfsPort), "tcp": strconv.Itoa(nfsTCPPort)}[s.at.transport]
	}
	s.nfs, err = rpc.Dial(ctx, s.at.rpcAddress.String(), o)
	if err == nil || asked || s.at.transport != "tcp" || !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	port, unknown := s.portOf(ctx, nfs3.Program, o)
	if unknown != nil || port == s.at.port {
		return err
	}
	s.at.port = port
	s.nfs, err = rpc.Dial(ctx, s.at.rpcAddress.String(), o)
	return err
}

// portOf asks the port mapper of the host.
func (s *nfsServerAt) portOf(ctx context.Context, p *rpc.Program, o *rpc.ClientOptions) (string, error) {
	c, err := rpc.Dial(ctx, rpcAddress{"tcp", s.at.host, portmap.Port}.String(), o)
	if err != nil {
		return "", err
	}
	defer c.Close()
	port, err := portmap.GetPort(ctx, c, p, portmap.TCP)
	return strconv.Itoa(int(port)), err
}

// askExports asks the same server, or the one of MOUNT that the port mapper knows.
func (s *nfsServerAt) askExports(ctx context.Context, o *rpc.ClientOptions) ([]nfs3.Export, error) {
	s.mount = s.nfs
	exports, err := nfs3.Exports(ctx, s.nfs, rpc.None)
	var refused *rpc.ProgramError
	if !errors.As(err, &refused) || !refused.Unavailable {
		return exports, err
	}
	s.mount = nil
	port, err := s.portOf(ctx, nfs3.MountProgram, o)
	if err != nil {
		return nil, &tcpError{fmt.Sprintf("%v does not have MOUNT, and the port mapper of its host does not say where that is: %v", s.at.rpcAddress, err), err}
	}
	if s.mount, err = rpc.Dial(ctx, rpcAddress{"tcp", s.at.host, port}.String(), o); err != nil {
		return nil, err
	}
	return nfs3.Exports(ctx, s.mount, rpc.None)
}

// closeWith closes the connections when ctx ends, after a grace: then calls that wait end, too.
func (s *nfsServerAt) closeWith(ctx context.Context, grace time.Duration) {
	s.end = context.AfterFunc(ctx, func() { time.AfterFunc(grace, s.close) })
}

func (s *nfsServerAt) close() {
	if s.end != nil {
		s.end()
	}
	if s.mount != nil && s.mount != s.nfs {
		s.mount.Close()
	}
	if s.nfs != nil {
		s.nfs.Close()
	}
}

// exportOf returns the export with the longest path that the path of an address begins with.
func (s *nfsServerAt) exportOf(at nfsAddress) (export string, found bool) {
	for _, e := range s.exports {
		p := path.Clean(e.Path)
		if within(at.path, p) && (!found || len(p) > len(export)) {
			export, found = p, true
		}
	}
	return export, found
}

// within reports whether a path is that of a directory or below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" && p != "" || strings.HasPrefix(p, dir+"/")
}

// nfsFiles is a mounted export.
type nfsFiles struct {
	*nfsServerAt
	*nfs3.Volume
	client *nfs3.Client
	export string
	name   string // of what the address is of, in the volume
}

// mountExport mounts the export that an address is in.
func (s *nfsServerAt) mountExport(ctx context.Context) (*nfsFiles, error) {
	export, found := s.exportOf(s.at)
	if !found {
		return nil, fmt.Errorf("%v: %s", s.at, s.noExport())
	}
	f := &nfsFiles{nfsServerAt: s, export: export, name: cmp.Or(strings.TrimPrefix(strings.TrimPrefix(s.at.path, export), "/"), ".")}
	var err error
	if f.client, err = f.mountAgain(ctx); err == nil {
		f.Volume, err = nfs3.NewVolume(ctx, f.client, nil)
	}
	s.mounted = err == nil
	return f, s.explain(ctx, s.at.rpcAddress.String()+export, err)
}

// mountAgain asks for the handle of the export.
func (f *nfsFiles) mountAgain(ctx context.Context) (*nfs3.Client, error) {
	root, err := nfs3.Mount(ctx, f.mount, f.export, rpc.ProcessSys().Auth())
	if err != nil {
		return nil, err
	}
	return nfs3.NewClient(ctx, f.nfs, root, nil)
}

// readable says why what an address is of cannot be read as a file is, which the server would call an invalid argument.
func (f *nfsFiles) readable(info fs.FileInfo) error {
	if a := info.Sys().(*nfs3.Attr); !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%v is a %s, and not a file", f.at, nfsTypes[a.Type].name)
	}
	if f.at.slash && !info.IsDir() {
		return f.at.noDirectory()
	}
	return nil
}

// noExport says which exports there are.
func (s *nfsServerAt) noExport() string {
	if len(s.exports) == 0 {
		return "the server exports nothing, or nothing to this machine"
	}
	var paths []string
	for _, e := range s.exports {
		paths = append(paths, e.Path)
	}
	if n := len(paths) - mostListed; n > 0 {
		paths = append(paths[:mostListed], fmt.Sprintf("and %d more", n))
	}
	return "the server does not export that; it exports " + strings.Join(paths, ", ")
}

// mountNFS connects to a server and mounts the export of an address. Calls end when ctx ends, after a grace.
func (f *nfsFlags) mountNFS(ctx context.Context, at nfsAddress, grace time.Duration) (*nfsFiles, error) {
	s, err := f.dialNFS(ctx, at)
	if err != nil {
		return nil, err
	}
	s.closeWith(ctx, grace)
	files, err := s.mountExport(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	return files, nil
}

// explain says what failed in words for a person, and what helps.
func (s *nfsServerAt) explain(ctx context.Context, what string, err error) error {
	var status nfs3.Status
	var local *fs.PathError
	says := func(format string, args ...any) error {
		return &tcpError{what + ": " + fmt.Sprintf(format, args...), err}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*tcpError)):
		return err
	case wrongReply(err) != "":
		return says("%s", wrongReply(err))
	case (errors.Is(err, rpc.ErrNoReply) || unanswered(err)) && (errors.Is(err, rpcrdma.ErrProtocol) || dropped(s.nfs) > 0):
		return says("the server has not answered for %v (--wait), but messages came that cannot be read, or are to no call", s.wait)
	case unreachedRPC(err, s.wait, s.at.rpcAddress, "a server of NFS") != "":
		return says("%s", unreachedRPC(err, s.wait, s.at.rpcAddress, "a server of NFS"))
	case errors.As(err, &status) && (status == nfs3.ErrPerm || status == nfs3.ErrAcces):
		return says("%s", s.permission(status))
	case errors.As(err, &status) && status == nfs3.ErrStale:
		return says("the server does not know it any more: it was removed, or the server was started again")
	case errors.As(err, &status) && errors.As(err, &local) && (local.Op == "link" || local.Op == "rename"):
		return says("%v", local.Err) // which names the procedure: no user has asked for that
	case errors.As(err, &status):
		return says("%v", status)
	case errors.As(err, &local):
		return says("%v", local.Err)
	}
	return says("%v", err)
}

// dropped returns how many messages of a server were of no use.
func dropped(c *rpc.Client) uint64 {
	if c == nil {
		return 0
	}
	n := c.Stats()
	return n.Unmatched + n.Malformed
}

// wrongReply says what is wrong with what a server has replied, in words for a person who has no options of Go, or "" if that is not what an error says.
func wrongReply(err error) string {
	var refused *rpcrdma.PeerError
	var of *rpc.CallError
	if !errors.As(err, &of) {
		return ""
	}
	call := of.Name()
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("the server refused %s (%s)", call, refused.Report.Code.Name(refused.Version))
	case errors.Is(err, rpc.ErrTooLong):
		return fmt.Sprintf("the server's reply to %s is longer than it may be", call)
	case errors.Is(err, rpcrdma.ErrReply), errors.Is(err, rpc.ErrReply), errors.Is(err, xdr.ErrInvalid):
		return fmt.Sprintf("the server's reply to %s is wrong: %v", call, of.Err)
	}
	return ""
}

// unreachedRPC says why a server does not answer, and what a user may do, or "" if it is not that what an error says.
func unreachedRPC(err error, wait time.Duration, at rpcAddress, server string) string {
	var unknown *net.DNSError
	var dialed *net.OpError
	dials := errors.As(err, &dialed) && dialed.Op == "dial"
	gone := errors.Is(err, rpc.ErrNoReply)
	elsewhere := func(speaks, transport string) string {
		other := at
		other.transport = transport
		return fmt.Sprintf("the server accepts TCP, but does not speak %s there: is that its port for %s, as in %v, or that of another program?", speaks, strings.ToUpper(transport), other)
	}
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return "no host of that name is known"
	case errors.As(err, &unknown):
		return "the name of the host cannot be looked up: " + unknown.Err
	case errors.Is(err, rpc.ErrNotRPC):
		return elsewhere("ONC RPC", "rdma")
	case gone && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("the server has not answered for %v (--wait), and nothing listens at that port now: was it ended?", wait)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at that port: connection refused; is %s started there, and is the port right?", server)
	case !gone && (errors.Is(err, mpa.ErrNotMPA) || errors.Is(err, mpa.ErrLost) && !unanswered(err)):
		return elsewhere("RDMA (iWARP)", "tcp")
	case dials && (dialed.Timeout() || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Sprintf("nothing answers there for %v (--wait); is that machine up, and do routes and firewalls let TCP through?", wait)
	case dials && !gone:
		return dialed.Err.Error()
	case gone, unanswered(err), errors.Is(err, syscall.ETIMEDOUT):
		return fmt.Sprintf("the server has not answered for %v (--wait); is it up, and is that its port for %s?", wait, at.transport)
	}
	return ""
}

// permission says for whom the server has refused something.
func (s *nfsServerAt) permission(status nfs3.Status) string {
	uid := os.Geteuid()
	text := fmt.Sprintf("%v for user %d", status, uid)
	switch {
	case uid == 0:
		return text + "; most servers take root for a user without rights: run it as another user, or serve with no_root_squash (nfs serve: --squash none)"
	case s.at.transport == "tcp" && !s.mounted:
		return text + "; if the server is Linux's: has the export the option insecure, which calls from ports above 1023 need?"
	}
	return text
}
