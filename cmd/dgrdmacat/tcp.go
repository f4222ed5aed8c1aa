package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
	"github.com/dgrdma/dgrdma/verbs"
)

// Addresses of RDMA over TCP (package verbs): tcp:HOST:PORT. They are no endpoint strings.
const tcpScheme = "tcp"

// isTCP says that a string is meant for RDMA over TCP.
func isTCP(s string) bool { return s == tcpScheme || strings.HasPrefix(s, tcpScheme+":") }

// isTCPServer says that a text is what a server over TCP says of itself: tcp:ADDRESS:PORT.
func isTCPServer(text string) bool {
	rest, found := strings.CutPrefix(text, tcpScheme+":")
	_, err := netip.ParseAddrPort(rest)
	return found && err == nil
}

// tcpAddress is where such a peer is, or where we are.
type tcpAddress struct{ host, port string }

// overTCPAlone says what takes such an address; hint says what to give in its place.
func overTCPAlone(hint string) string {
	return "that is an address of RDMA over TCP, which rping, ping --op and bench --op take, and no endpoint string of DG/RDMA: " + hint
}

// insteadOfRDMA says how an address begins that was given as those of NFS and ONC RPC are.
func insteadOfRDMA(rest string) string {
	return "addresses of RDMA over TCP begin with tcp: here, and with rdma: in nfs and rpcinfo alone: write " + tcpScheme + ":" + rest
}

// chosenPort is the one in examples of commands that have none of their own.
const chosenPort = "7471"

// examplePort is the port in an example of an address that has that one unless it says another.
func examplePort(port string) string {
	if port == "" || port == "0" {
		return chosenPort
	}
	return port
}

// needTCP says what an address looks like that has that port unless it says another.
func needTCP(port string) string {
	return "need tcp:HOST:PORT, as in tcp:10.0.0.2:" + examplePort(port)
}

// tcpServes says in help where a server is heard; without says which port it has without one.
func tcpServes(port, without string) string {
	return fmt.Sprintf("tcp and tcp:%[1]s hear those who reach any address of this machine, IPv4 or IPv6, tcp:10.0.0.2 and tcp:10.0.0.2:%[1]s that one alone; %s", port, without)
}

const anyFreePort = "without a port, any that is free"

// parseTCP reads an address. what says where in the command line it stands; port is the one that it has unless it says one.
func parseTCP(what, s, port string) (a tcpAddress, err error) {
	need := needTCP(port)
	if _, wrong := url.Parse(s); !isTCP(s) && wrong == nil {
		return a, badUsage("%s %s: that is an endpoint string of DG/RDMA, and this is RDMA over TCP: %s", what, s, need)
	}
	if rest, is := strings.CutPrefix(s, "rdma:"); is {
		return a, badUsage("%s %s: %s", what, s, insteadOfRDMA(rest))
	}
	if !isTCP(s) {
		return a, badUsage("%s %s: %s", what, s, need)
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(s, tcpScheme), ":")
	a.port = port
	switch {
	case rest == "":
	case strings.Trim(rest, "0123456789") == "":
		a.port = rest
	case net.ParseIP(rest) != nil || strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") || !strings.Contains(rest, ":"):
		a.host = strings.Trim(rest, "[]")
	default:
		if a.host, a.port, err = net.SplitHostPort(rest); err != nil {
			return a, badUsage("%s %s: %s or tcp:[::1]:%s", what, s, need, examplePort(port))
		}
	}
	if strings.Contains(a.host, "/") {
		return a, badUsage("%s %s: %s", what, s, need)
	}
	if _, err := strconv.ParseUint(a.port, 10, 16); err != nil && a.port != "" {
		return a, badUsage("%s %s: port %q: need a number from 0 to 65535", what, s, a.port)
	}
	return a, nil
}

// parseTCPPeer reads the address of a peer, which has a host and a port.
func parseTCPPeer(what, s, port string) (a tcpAddress, err error) {
	if a, err = parseTCP(what, s, port); err != nil {
		return a, err
	}
	if a.host == "" || a.port == "" || a.port == "0" {
		return a, badUsage("%s %s: %s", what, s, needTCP(port))
	}
	if ip := net.ParseIP(a.host); ip != nil && ip.IsUnspecified() {
		return a, badUsage("%s %s: %v stands for all addresses of a machine: name the one by which you reach the other side's", what, s, ip)
	}
	return a, nil
}

// reachedAt is where peers reach a listener: where that is at all addresses of this machine, at the one on the way to the default
// route, or the first that others can reach, and then it says by which others, in a line of its own.
func reachedAt(at *net.TCPAddr) (a tcpAddress, others string) {
	ip, _ := netip.AddrFromSlice(at.IP)
	all := udp.Addresses(ip.Unmap().WithZone(at.Zone))
	if at.IP.IsUnspecified() {
		var also []string
		for _, ip := range all[1:] {
			also = append(also, inString(ip))
		}
		others = everywhere(inString(all[0]), also)
	}
	return tcpAddress{all[0].String(), strconv.Itoa(at.Port)}, others
}

// String is what [verbs.Host.Dial] takes.
func (a tcpAddress) String() string { return tcpScheme + ":" + net.JoinHostPort(a.host, a.port) }

// open opens the host that listens at the address.
func (a tcpAddress) open() (*verbs.Host, error) {
	if a.host == "" {
		return verbs.Open(tcpScheme)
	}
	return verbs.Open(tcpScheme + ":[" + a.host + "]")
}

// openTCPLocal opens the host from which is dialed: --local, if it was given.
func openTCPLocal(local string) (*verbs.Host, error) {
	if local == "" {
		return verbs.Open(tcpScheme)
	}
	a, err := parseTCP("--local", local, "")
	if err == nil && a.port != "" {
		err = badUsage("--local %s: need an address of this machine without a port, as in tcp:10.0.0.1", local)
	}
	if err != nil {
		return nil, err
	}
	return a.open()
}

// tcpError is an error in words of this program, which say all that it is about.
type tcpError struct {
	words string
	error
}

func (e *tcpError) Error() string { return e.words }
func (e *tcpError) Unwrap() error { return e.error }

// dialing is an attempt to reach a server over TCP: where, for how long, and the command that has to run there.
type dialing struct {
	to     tcpAddress
	within time.Duration
	there  string
}

// context bounds the attempt.
func (d *dialing) context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.within)
}

// explain says why the attempt failed, and what a user may do about it.
func (d *dialing) explain(err error) error {
	var rejected *mpa.RejectedError
	var dialed *net.OpError
	dials := errors.As(err, &dialed) && dialed.Op == "dial"
	says := func(format string, args ...any) error {
		return &tcpError{fmt.Sprintf("%v: "+format, append([]any{d.to}, args...)...), err}
	}
	switch {
	case errors.As(err, &rejected) && len(rejected.Private) == 0:
		return &tcpError{fmt.Sprintf("%v; what runs there is not %s, or serves others", rejected, d.there), err}
	case errors.As(err, &rejected):
		return &tcpError{rejected.Error(), err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return says("nothing listens at that port: connection refused; does %s run there, and is this the address it printed?", d.there)
	case dials && (noWayTCP(err) || refused.NoFiles(err)):
		return err // it says what to do
	case dials && dialed.Timeout():
		return says("nobody answers within %v; is that machine up, do routes and firewalls let TCP through, and does %s run there?", d.within, d.there)
	case dials:
		return fmt.Errorf("%w; does %s run there, and is this the address it printed?", err, d.there)
	case errors.Is(err, mpa.ErrNotMPA):
		return fmt.Errorf("%w; does %s run there?", err, d.there)
	case unanswered(err):
		return says("something listens at that port, and no answer of iWARP came within %v; does %s run there?", d.within, d.there)
	case errors.Is(err, mpa.ErrLost):
		return fmt.Errorf("%w; does %s run there?", err, d.there)
	}
	return err
}

// unanswered says that the time for an answer was over.
func unanswered(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// noWayTCP says that this machine has no address, or no way, for a connection: nobody there has heard of it.
func noWayTCP(err error) bool {
	var call *os.SyscallError
	return errors.As(err, new(*net.DNSError)) || errors.As(err, &call) && call.Syscall == "bind" ||
		errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH)
}

// framingFlags are how a stream of TCP is cut into frames.
type framingFlags struct {
	noCRC, strict bool
	revision      int
}

const noCRCMeans = "do without checksums if the other side does, too"

// register adds the flags; when says in their help to what they belong.
func (f *framingFlags) register(fs *flag.FlagSet, when string) {
	fs.BoolVar(&f.noCRC, "no-crc", false, when+noCRCMeans)
	fs.BoolVar(&f.strict, "strict", false, when+"keep to the letter of RFC 5044: no frames longer than a TCP segment, by which two of our own kind are faster")
	f.revision = 2
	fs.Var((*revisionFlag)(&f.revision), "revision", when+"revision of MPA that the client asks for, "+strings.Join(revisions, " or "))
}

// revisionFlag is --revision, and revisions are what it may be.
type revisionFlag int

var revisions = []string{"1", "2"}

func (f *revisionFlag) String() string { return strconv.Itoa(int(*f)) }

// Set implements [flag.Value].
func (f *revisionFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(revisions, text) {
		return errors.New("need " + strings.Join(revisions, " or "))
	}
	*f = revisionFlag(n)
	return nil
}

func (*revisionFlag) valueName() string { return "N" }

func (*revisionFlag) choices() []string { return revisions }

// carrierFlags are how a connection is opened.
type carrierFlags struct {
	framing    framingFlags
	peerToPeer bool
	ready      string
}

// readies are the frames that begin a connection in peer-to-peer mode, and readyNames what they are called.
var (
	readies    = []mpa.Ready{mpa.ReadyWrite, mpa.ReadyRead, mpa.ReadySend}
	readyNames = []string{"write", "read", "send"}
)

func (c *carrierFlags) register(fs *flag.FlagSet) {
	c.framing.register(fs, "")
	fs.BoolVar(&c.peerToPeer, "peer-to-peer", false, "with --to: let the server send first, as RFC 6581 has it")
	fs.Var(&oneOf{&c.ready, readyNames}, "ready", "with --peer-to-peer: the `frame` that allows it, "+strings.Join(readyNames, ", ")+"; otherwise as the server likes")
}

func (c *carrierFlags) check() error {
	switch {
	case c.peerToPeer && c.framing.revision == 1:
		return badUsage("--peer-to-peer needs --revision 2")
	case c.ready != "" && !c.peerToPeer:
		return badUsage("--ready belongs to --peer-to-peer")
	case c.ready != "" && !slices.Contains(readyNames, c.ready):
		return badUsage("--ready %s: need one of %s", c.ready, strings.Join(readyNames, ", "))
	}
	return nil
}

func (c *carrierFlags) options() verbs.Options {
	o := verbs.Options{NoCRC: c.framing.noCRC, Strict: c.framing.strict, Revision: c.framing.revision, PeerToPeer: c.peerToPeer}
	if i := slices.Index(readyNames, c.ready); i >= 0 {
		o.Ready = readies[i]
	}
	return o
}

// crcInWords says whether a connection has checksums.
func crcInWords(crc bool) string {
	if crc {
		return "with CRC"
	}
	return "without CRC"
}
