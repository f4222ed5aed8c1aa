package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// Usual ports of NFS: RFC 8267 has the one over RDMA.
const (
	nfsPort    = 20049
	nfsTCPPort = 2049
)

// nfsEndTime is how long a server that ends waits for calls in work. Arbitrary: long for a disk, short for a person.
const nfsEndTime = 5 * time.Second

var nfsServeCommand = command{
	name: "nfs serve", summary: "serve a directory by NFS over RDMA and over TCP", args: "DIR",
	about: fmt.Sprintf(`Serves a directory by NFS version 3, over RDMA (iWARP) at port %d and over TCP at port %d,
until ^C. It prints the commands with which Linux mounts the directory. A client needs an
iWARP NIC for RDMA, or Linux's siw over any other one:

  modprobe siw; modprobe rpcrdma; rdma link add siw0 type siw netdev eth0

MOUNT is served at both ports; Linux asks for it over TCP, also where it mounts over RDMA. The server
needs no privileges: ports of 1024 and above are free for all users. As root it acts for the
user that a caller claims to be, and otherwise for its own user alone.

Whoever reaches the ports may claim to be any user, and so read and change all files there
but those of root: name an address of a network that is trusted, or give --read-only or
--squash all. There are no locks: clients mount with nolock.

With --fault the server misbehaves on purpose over RDMA, for tests of clients:

%s`, nfsPort, nfsTCPPort, strings.TrimSuffix(nfsFaultTable(), "\n")),
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsServeOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			stop, err := o.metrics.start(std.err)
			if err != nil {
				return err
			}
			defer stop()
			return nfsServe(ctx, o, args[0], std)
		}
	},
}

type nfsServeOptions struct {
	listen         string
	port, tcpPort  int
	export, squash string
	readOnly, sync bool
	verbose        bool
	versions       versionFlag
	faults         nfsFaults
	metrics        metricsFlag
}

// squashes are which callers are not the user that they claim to be.
var squashes = []string{"root", "none", "all"} // in the order of nfs3.Squash

func (o *nfsServeOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.listen, "listen", "", "serve at this `address` alone, as in 10.0.0.1; without it at every address of this machine")
	fs.IntVar(&o.port, "port", nfsPort, "`port` for RDMA, or 0 for any that is free")
	fs.IntVar(&o.tcpPort, "tcp-port", nfsTCPPort, "`port` for TCP, or 0 for any that is free")
	fs.StringVar(&o.export, "export", "/export", "`path` that clients mount")
	fs.BoolVar(&o.readOnly, "read-only", false, "let no client change anything")
	o.squash = squashes[0]
	fs.Var(&oneOf{&o.squash, squashes}, "squash", "`who` is taken for user and group 65534, as /etc/exports has it: root, none or all")
	fs.BoolVar(&o.sync, "sync-metadata", false, "bring each change of a directory to the disk before it is answered")
	fs.BoolVar(&o.verbose, "verbose", false, "print each call when it is done: client, XID, user, procedure, name, status, time")
	sameAs(fs, "v", "verbose")
	o.versions.register(fs)
	o.faults.register(fs)
	o.metrics.register(fs)
}

func (o *nfsServeOptions) check(args []string) error {
	_, err := netip.ParseAddr(strings.Trim(o.listen, "[]"))
	switch {
	case len(args) != 1 || args[0] == "":
		return badUsage("which directory? Give one DIR")
	case o.listen != "" && err != nil:
		return badUsage("--listen %s: need an IP address of this machine, as in 10.0.0.1; ports are --port and --tcp-port", o.listen)
	case o.port < 0 || o.port > 65535:
		return badUsage("--port %d: need 0 to 65535", o.port)
	case o.tcpPort < 0 || o.tcpPort > 65535:
		return badUsage("--tcp-port %d: need 0 to 65535", o.tcpPort)
	case o.port == o.tcpPort && o.port != 0:
		return badUsage("--port and --tcp-port are both %d: iWARP needs a port of TCP of its own", o.port)
	case !slices.Contains(squashes, o.squash):
		return badUsage("--squash %s: need one of %s", o.squash, strings.Join(squashes, ", "))
	case !path.IsAbs(o.export) || len(o.export) > nfs3.MaxPath:
		return badUsage("--export %s: need a path such as /export", o.export)
	}
	if err := errors.Join(o.versions.check(), o.faults.check()); err != nil {
		return err
	}
	o.listen, o.export = strings.Trim(o.listen, "[]"), path.Clean(o.export)
	return nil
}

// nfsServer is a server at work.
type nfsServer struct {
	*nfsServeOptions
	dir  string
	std  *stdio
	log  *peerLog
	rpc  *rpc.Server
	stop context.CancelCauseFunc

	names nfsNames
	mu    sync.Mutex // of std.out
}

func nfsServe(ctx context.Context, o *nfsServeOptions, dir string, std *stdio) error {
	served, err := localfs.OpenDirectory(dir, &localfs.DirectoryOptions{SyncMetadata: o.sync})
	if err != nil {
		return err
	}
	defer served.Close()
	if err := mayList(dir); err != nil {
		return err
	}
	s := &nfsServer{nfsServeOptions: o, dir: dir, std: std, log: newPeerLog(std.err)}
	defer s.log.close()
	host, err := tcpAddress{host: o.listen}.open()
	if err != nil {
		return err
	}
	defer host.Close()
	overRDMA, err := host.Listen(strconv.Itoa(o.port))
	if err != nil {
		return withFlag("--port", err)
	}
	overTCP, err := net.Listen("tcp", net.JoinHostPort(o.listen, strconv.Itoa(o.tcpPort)))
	if err != nil {
		overRDMA.Close()
		return withFlag("--tcp-port", refused.Bind(err, o.listen == ""))
	}
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	options := &rpc.ServerOptions{Failed: func(c *rpc.Call, err error) { s.log.tell(c.RemoteAddr(), fmt.Errorf("%s: %w", procedureName(c), err)) }}
	options.Versions = o.versions.versions()
	if o.faults.kind != noFault {
		options.Fault = o.faults.instead
	}
	s.rpc = rpc.NewServer(options)
	nfs := &nfs3.ServerOptions{
		Export: o.export, ReadOnly: o.readOnly, Squash: nfs3.Squash(slices.Index(squashes, o.squash)),
		Failed: func(procedure string, err error) { fmt.Fprintf(s.log, "%s: %v\n", procedure, err) },
	}
	if o.verbose {
		nfs.Done = s.done
	}
	of := nfs3.NewServer(served, nfs)
	of.Register(s.rpc)
	at, others := reachedAt(overRDMA.Addr().(*net.TCPAddr))
	o.metrics.rdma(host, at)
	o.metrics.rpc(s.rpc, of, at)
	s.introduce(std.err, at, strconv.Itoa(overTCP.Addr().(*net.TCPAddr).Port), others)
	return s.run(ctx, overRDMA, overTCP)
}

// withFlag names the flag that has another port.
func withFlag(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w, with %s", err, flag)
	}
	return err
}

// mayList checks at the start what each client would fail with.
func mayList(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return f.Close()
}

// introduce says what is served, and how Linux mounts it.
func (s *nfsServer) introduce(w io.Writer, at tcpAddress, tcpPort, others string) {
	what := "for reading and writing"
	if s.readOnly {
		what = "for reading"
	}
	fmt.Fprintf(w, "serving %s as %s %s on rdma:%s and tcp:%s\n%s", text.Plain(s.dir), text.Plain(s.export), what,
		net.JoinHostPort(at.host, at.port), net.JoinHostPort(at.host, tcpPort), others)
	six, host := "", at.host
	if strings.Contains(host, ":") {
		six, host = "6", "["+host+"]"
	}
	mount := func(transport, port string) string {
		return fmt.Sprintf("mount -t nfs -o vers=3,%s,port=%s,nolock,mountproto=tcp%s,mountport=%s %s /mnt", transport, port, six, tcpPort, text.Plain(inShell(host+":"+s.export)))
	}
	overRDMA := "rdma"
	if six != "" {
		overRDMA = "proto=rdma6"
	}
	fmt.Fprintf(w, "over RDMA: %s\nover TCP:  %s\n", mount(overRDMA, at.port), mount("proto=tcp"+six, tcpPort))
	if kind := s.faults.kind; kind != "" && kind != noFault {
		fmt.Fprintf(w, "misbehaves over RDMA with one reply of %d: %s\n", s.faults.every, nfsFaultKinds[kind].about)
	}
	switch uid := os.Geteuid(); {
	case uid != 0:
		fmt.Fprintf(w, "all callers act as user %d, that of this process\n", uid)
	case s.squash != "all":
		fmt.Fprintf(w, "a caller that reaches these ports may claim to be any user%s\n", map[bool]string{true: " but root"}[s.squash == "root"])
	}
}

// inShell is a word as a shell takes it.
func inShell(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@%[]"
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// run serves until ctx ends, and then answers calls in work.
func (s *nfsServer) run(ctx context.Context, overRDMA *verbs.Listener, overTCP net.Listener) error {
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	serving.Go(func() { failed <- s.rpc.ServeRDMA(overRDMA) })
	serving.Go(func() { failed <- s.rpc.ServeTCP(overTCP) })
	var err error
	select {
	case <-ctx.Done():
		if cause := context.Cause(ctx); errors.As(cause, new(untold)) {
			err = cause
		}
	case err = <-failed:
	}
	ending, stop := context.WithTimeout(context.Background(), nfsEndTime)
	defer stop()
	if s.rpc.Shutdown(ending) != nil && err == nil {
		err = fmt.Errorf("calls were not answered within %v: they are cut short", nfsEndTime)
	}
	serving.Wait()
	return err
}

// procedureName names the procedure of a call, as in "NFS READ".
func procedureName(c *rpc.Call) string {
	return c.Program.Name + " " + c.Program.Procedures[c.Procedure].Name
}
