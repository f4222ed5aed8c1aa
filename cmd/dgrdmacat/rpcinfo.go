package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
)

var rpcinfoCommand = command{
	name: "rpcinfo", summary: "ask which programs of ONC RPC a machine has, or whether one answers", args: "ADDRESS [PROGRAM [VERSION]]",
	about: fmt.Sprintf(`Lists what the port mapper (rpcbind) of a host knows; or, with PROGRAM, a number or a name, calls
procedure NULL of one version, or of all versions that the server has, and says how long the answer
took. Over RDMA it says which version of RPC-over-RDMA is spoken, how many calls the server takes
at once (its credits), and how long messages may be that go by one Send (inline thresholds).

  dgrdmacat rpcinfo 10.0.0.2
  dgrdmacat rpcinfo tcp:10.0.0.2 nfs
  dgrdmacat rpcinfo rdma:10.0.0.2 nfs 3
  dgrdmacat rpcinfo tcp:10.0.0.2:4045 100021

ADDRESS is a HOST, tcp:HOST[:PORT] or rdma:HOST[:PORT]. Without a port the list comes from port %s,
the port mapper says where PROGRAM listens, and over RDMA the port is that of NFS, %d.`, portmap.Port, nfsPort),
	flags: func(fs *flag.FlagSet) action {
		o := new(rpcinfoOptions)
		o.register(fs)
		fs.BoolVar(&o.json, "json", false, "print a JSON object for each program and version")
		return func(ctx context.Context, std *stdio, args []string) error {
			if err := o.take(args); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := o.over.of(o.at); err != nil {
				return err
			}
			if len(args) == 1 {
				return o.list(ctx, std.out)
			}
			return o.ask(ctx, std.out)
		}
	},
}

type rpcinfoOptions struct {
	nfsFlags
	json    bool
	at      rpcAddress
	program uint32
	version int64 // -1: all
}

// rpcNames are programs that users meet, by the names that rpcinfo has for them.
var rpcNames = map[uint32]string{
	portmap.Program.Number: "portmapper", 100001: "rstatd", 100002: "rusersd", nfs3.Program.Number: "nfs", nfs3.MountProgram.Number: "mountd",
	100007: "ypbind", 100011: "rquotad", 100021: "nlockmgr", 100024: "status", 100227: "nfs_acl", 395183: "vxi11_core", 395184: "vxi11_async", 395185: "vxi11_intr",
}

// rpcName is what a program is called, for people.
func rpcName(program uint32) string {
	if name := rpcNames[program]; name != "" {
		return fmt.Sprintf("%s (%d)", name, program)
	}
	return "program " + rpc.ProgramNumber(program)
}

// take reads the arguments.
func (o *rpcinfoOptions) take(args []string) (err error) {
	if len(args) < 1 || len(args) > 3 || args[0] == "" {
		return badUsage("need ADDRESS [PROGRAM [VERSION]], as in 10.0.0.2 or rdma:10.0.0.2 nfs")
	}
	address := args[0]
	if transport, _, _ := strings.Cut(address, ":"); !slices.Contains(rpcTransports, transport) {
		address = "tcp:" + address
	}
	if o.at, err = parseRPC(address); err != nil {
		return badUsage("%s: %w: need HOST, tcp:HOST, rdma:HOST or rdma:HOST:PORT", args[0], err)
	}
	o.version = -1
	if len(args) == 1 && o.at.transport == "rdma" {
		return badUsage("%s: port mappers are reached over TCP: leave out rdma, or name a PROGRAM, as in nfs", args[0])
	}
	if len(args) > 1 {
		number, err := strconv.ParseUint(args[1], 10, 32)
		for n, name := range rpcNames {
			if name == args[1] || name == args[1]+"d" {
				number, err = uint64(n), nil
			}
		}
		if err != nil {
			var names []string
			for _, name := range rpcNames {
				names = append(names, name)
			}
			slices.Sort(names)
			return badUsage("PROGRAM %s: need a number, or one of %s", args[1], strings.Join(names, ", "))
		}
		o.program = uint32(number)
	}
	if len(args) > 2 {
		number, err := strconv.ParseUint(args[2], 10, 32)
		if err != nil {
			return badUsage("VERSION %s: need a number", args[2])
		}
		o.version = int64(number)
	}
	return nil
}

// dial connects, within --wait.
func (o *rpcinfoOptions) dial(ctx context.Context, at rpcAddress) (*rpc.Client, error) {
	c, err := rpc.Dial(ctx, at.String(), o.options())
	return c, o.explain(ctx, at, err)
}

// explain says why there is no answer.
func (o *rpcinfoOptions) explain(ctx context.Context, at rpcAddress, err error) error {
	server := "the server"
	if at.port == portmap.Port {
		server = "a port mapper (rpcbind)"
	}
	switch words := unreachedRPC(err, o.wait, at, server); {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errInterrupted):
		return errInterrupted
	case wrongReply(err) != "":
		return &tcpError{at.String() + ": " + wrongReply(err), err}
	case words != "":
		return &tcpError{at.String() + ": " + words, err}
	}
	return err
}

// rpcMapping is a program that a port mapper knows, as --json has it.
type rpcMapping struct {
	Program   uint32 `json:"program"`
	Name      string `json:"name,omitempty"`
	Version   uint32 `json:"version"`
	Transport string `json:"transport"`
	Port      uint16 `json:"port"`
}

// list prints what a port mapper knows.
func (o *rpcinfoOptions) list(ctx context.Context, w io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	if o.at.port == "" {
		o.at.port = portmap.Port
	}
	c, err := o.dial(ctx, o.at)
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := portmap.Dump(ctx, c)
	if err != nil {
		return o.explain(ctx, o.at, err)
	}
	return buffered(w, func(w io.Writer) error {
		if !o.json && len(all) > 0 {
			fmt.Fprintln(w, "   program version transport  port  name")
		}
		for _, m := range all {
			r := rpcMapping{m.Program, rpcNames[m.Program], m.Version, m.Protocol.String(), m.Port}
			if o.json {
				if err := json.NewEncoder(w).Encode(r); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%10d %7d %9s %5d  %s", r.Program, r.Version, r.Transport, r.Port, r.Name), " "))
		}
		return nil
	})
}

// rpcAnswer is a program that answers, as --json has it.
type rpcAnswer struct {
	Program  uint32    `json:"program"`
	Name     string    `json:"name,omitempty"`
	Version  uint32    `json:"version"`
	Address  string    `json:"address"`
	AnswerUS float64   `json:"answer_us"`
	OverRDMA *rpcTerms `json:"rpc_over_rdma,omitempty"`
}

// rpcTerms are what both sides of a connection over RDMA keep to.
type rpcTerms struct {
	Version       uint32 `json:"version"`
	Credits       int    `json:"credits"`
	InlineCalls   int    `json:"inline_calls"`   // bytes
	InlineReplies int    `json:"inline_replies"` // bytes
}

// mostVersions is how many versions of a program are called: arbitrary, more than any program has.
const mostVersions = 32

// ask calls a program.
func (o *rpcinfoOptions) ask(ctx context.Context, w io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	if err := o.findPort(ctx); err != nil {
		return err
	}
	c, err := o.dial(ctx, o.at)
	if err != nil {
		return err
	}
	defer c.Close()
	first, last := uint32(max(o.version, 0)), uint32(max(o.version, 0))
	if o.version < 0 {
		var has *rpc.ProgramError
		switch err := o.call(ctx, c, 0); { // which no program has: the server says which it has
		case errors.As(err, &has) && !has.Unavailable:
			if first, last = has.Low, has.High; first > last || last-first >= mostVersions {
				return fmt.Errorf("%v: %s: the server says that it has versions %d to %d: name one", o.at, rpcName(o.program), first, last)
			}
		case err != nil:
			return o.refused(ctx, err)
		}
	}
	for v := first; ; v++ {
		if err := o.call(ctx, c, v); err != nil {
			return o.refused(ctx, err)
		}
		began := time.Now() // of the second call: the first one settles versions and credits
		err := o.call(ctx, c, v)
		took := time.Since(began)
		if err != nil {
			return o.refused(ctx, err)
		}
		r := &rpcAnswer{Program: o.program, Name: rpcNames[o.program], Version: v, Address: o.at.String(), AnswerUS: microseconds(took)}
		if t, ok := c.RDMATerms(); ok {
			r.OverRDMA = &rpcTerms{t.Version, t.Calls, t.Send, t.Received}
		}
		if err := r.print(w, o.json); err != nil || v == last {
			return err
		}
	}
}

// findPort asks the port mapper where the program listens, if the address does not say it.
func (o *rpcinfoOptions) findPort(ctx context.Context) error {
	switch {
	case o.at.port != "":
		return nil
	case o.at.transport == "rdma":
		o.at.port = strconv.Itoa(nfsPort)
		return nil
	case o.program == portmap.Program.Number:
		o.at.port = portmap.Port
		return nil
	}
	mapper := rpcAddress{"tcp", o.at.host, portmap.Port}
	c, err := o.dial(ctx, mapper)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return &tcpError{fmt.Sprintf("%v: there is no port mapper (rpcbind) that says where %s is: name its port, as in %v", mapper, rpcName(o.program), rpcAddress{"tcp", o.at.host, strconv.Itoa(nfsTCPPort)}), err}
	}
	if err != nil {
		return err
	}
	defer c.Close()
	port, err := portmap.GetPort(ctx, c, &rpc.Program{Number: o.program, Version: uint32(max(o.version, 0))}, portmap.TCP)
	switch {
	case errors.Is(err, portmap.ErrNotRegistered):
		return fmt.Errorf("%v: the port mapper does not know %s over TCP: dgrdmacat rpcinfo %s lists what it knows", mapper, rpcName(o.program), o.at.host)
	case err != nil:
		return o.explain(ctx, mapper, err)
	}
	o.at.port = strconv.Itoa(int(port))
	return nil
}

// call calls NULL of a version.
func (o *rpcinfoOptions) call(ctx context.Context, c *rpc.Client, version uint32) error {
	p := &rpc.Program{Number: o.program, Version: version, Name: rpcName(o.program), Procedures: []rpc.Procedure{{Name: "NULL"}}}
	return c.Bind(p, rpc.None).Call(ctx, 0, nil, nil, nil)
}

// refused says why there are no results.
func (o *rpcinfoOptions) refused(ctx context.Context, err error) error {
	var has *rpc.ProgramError
	if errors.As(err, &has) {
		return &tcpError{fmt.Sprintf("%v: %s: %v", o.at, rpcName(o.program), has), err}
	}
	return o.explain(ctx, o.at, err)
}

func (r *rpcAnswer) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	text := fmt.Sprintf("%s version %d answers at %s in %.0f us", rpcName(r.Program), r.Version, r.Address, r.AnswerUS)
	if t := r.OverRDMA; t != nil {
		text += fmt.Sprintf(" by RPC-over-RDMA version %d, with %s, and inline up to %d bytes of a call and %d of a reply", t.Version, count(t.Credits, "credit"), t.InlineCalls, t.InlineReplies)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
