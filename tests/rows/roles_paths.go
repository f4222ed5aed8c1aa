package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Kinds of flows, without those over links. All others are congestion controllers of the kernel's TCP.
const (
	kindOurs = "ours"
	kindQUIC = "quic"
)

// A flow of ours has that many transactions of that size outstanding: 8 MiB, twice what the longest path
// of the cells holds.
const (
	pathPiece = 64 << 10
	pathDepth = 128
)

// pathSink takes what one flow brings until its standard input ends, and prints where it is.
func pathSink(kind, at string) error {
	if overLink(kind) {
		return linkSink(kind, at)
	}
	var where string
	if kind == kindOurs {
		memory, err := dgrdma.NewRegion(pathPiece*pathDepth + pathPiece)
		if err != nil {
			return err
		}
		e, err := dgrdma.Open(at, &dgrdma.Config{Memory: memory, AcceptAny: true})
		if err != nil {
			return err
		}
		defer e.Close()
		where = e.URL()
	} else {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		defer l.Close()
		where = l.Addr().String()
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			io.Copy(io.Discard, c)
			c.Write([]byte{1}) // all came
		}()
	}
	fmt.Println(where)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// flowReport is what a flow says when it has ended.
type flowReport struct {
	Bytes   float64 `json:"bytes"`   // delivered
	Seconds float64 `json:"seconds"` // since it began to dial
	Late    float64 `json:"late"`    // of Bytes, those after the first quarter
	LateFor float64 `json:"late_for"`
}

// sender is a flow: it sends until the context ends, or that many bytes were delivered.
type sender interface {
	dial(ctx context.Context, local, to string) error
	send(ctx context.Context, bytes int) error // 0: without end
	delivered() uint64
	close()
}

// pathFlow sends that many bytes, or for that many seconds, and prints a flowReport.
func pathFlow(kind, local, to, seconds, bytes string) error {
	long, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(bytes)
	if err != nil {
		return err
	}
	var s sender
	switch kind {
	case kindOurs:
		s = &ourFlow{}
	case kindCopy:
		s = &copyFlow{}
	case kindSend:
		s = &streamFlow{}
	default:
		s = &tcpFlow{controller: kind}
	}
	began := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(time.Duration(long*float64(time.Second))))
	defer cancel()
	if err := s.dial(ctx, local, to); err != nil {
		return err
	}
	defer s.close()
	var early atomic.Uint64
	quarter := time.Duration(long / 4 * float64(time.Second))
	time.AfterFunc(quarter-time.Since(began), func() { early.Store(s.delivered()) })
	if err := s.send(ctx, count); err != nil {
		return err
	}
	took, all := time.Since(began), s.delivered()
	return json.NewEncoder(os.Stdout).Encode(flowReport{
		float64(all), took.Seconds(), float64(all - early.Load()), (took - quarter).Seconds(),
	})
}

// ourFlow writes into a peer's memory.
type ourFlow struct {
	endpoint *dgrdma.Endpoint
	peer     *dgrdma.Conn
	bytes    atomic.Uint64
}

func (f *ourFlow) dial(ctx context.Context, local, to string) (err error) {
	if f.endpoint, err = dgrdma.Open(local, nil); err != nil {
		return err
	}
	f.peer, err = f.endpoint.DialContext(ctx, to)
	return err
}

func (f *ourFlow) send(ctx context.Context, bytes int) error {
	pieces := (bytes + pathPiece - 1) / pathPiece
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, pathDepth)
	for lane := range pathDepth {
		group.Go(func() {
			data := make([]byte, pathPiece)
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if bytes > 0 && n >= pieces {
					return
				}
				size := pathPiece
				if bytes > 0 {
					size = min(size, bytes-n*pathPiece)
				}
				err := f.peer.Write(ctx, &dgrdma.Transaction{
					Segments:   []dgrdma.Segment{{Addr: uint32(pathPiece * (1 + lane)), Bytes: data[:size]}},
					Completion: dgrdma.Word(uint32(4*lane), uint32(1+n)),
				})
				if err != nil && ctx.Err() == nil {
					errs <- err
					return
				}
				if err == nil {
					f.bytes.Add(uint64(size))
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	if bytes > 0 {
		return ctx.Err()
	}
	return nil
}

func (f *ourFlow) delivered() uint64 { return f.bytes.Load() }

func (f *ourFlow) close() { f.endpoint.Close() }

// tcpFlow is a stream of the kernel.
type tcpFlow struct {
	controller string
	conn       *net.TCPConn
	whole      atomic.Uint64 // bytes of a flow that has been delivered to the program
}

func (f *tcpFlow) dial(ctx context.Context, local, to string) error {
	at, err := netip.ParseAddr(local)
	if err != nil {
		return err
	}
	d := net.Dialer{
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0)),
		Control: func(_, _ string, raw syscall.RawConn) (err error) {
			return cmp.Or(raw.Control(func(fd uintptr) {
				err = os.NewSyscallError("setsockopt TCP_CONGESTION "+f.controller, unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, f.controller))
			}), err)
		},
	}
	c, err := d.DialContext(ctx, "tcp", to)
	if err == nil {
		f.conn = c.(*net.TCPConn)
	}
	return err
}

func (f *tcpFlow) send(ctx context.Context, bytes int) error {
	end, _ := ctx.Deadline()
	f.conn.SetDeadline(end)
	data := make([]byte, pathPiece)
	if bytes == 0 {
		for {
			if _, err := f.conn.Write(data); err != nil {
				if ctx.Err() != nil || os.IsTimeout(err) {
					return nil
				}
				return err
			}
		}
	}
	for left := bytes; left > 0; left -= min(left, len(data)) {
		if _, err := f.conn.Write(data[:min(left, len(data))]); err != nil {
			return err
		}
	}
	if err := f.conn.CloseWrite(); err != nil {
		return err
	}
	if _, err := io.ReadFull(f.conn, data[:1]); err != nil {
		return err
	}
	f.whole.Store(uint64(bytes))
	return nil
}

func (f *tcpFlow) delivered() (n uint64) {
	if n = f.whole.Load(); n > 0 {
		return n
	}
	raw, err := f.conn.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}

func (f *tcpFlow) close() {
	f.conn.SetLinger(0) // what was not delivered counts for nothing
	f.conn.Close()
}

// portOf returns the address of a sink by what it printed.
func portOf(where string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(where); err == nil {
		return a, nil
	}
	// A complete endpoint string: scheme:ADDRESS;PORT;...
	_, rest, _ := strings.Cut(where, ":")
	parts := strings.Split(rest, ";")
	if len(parts) < 2 {
		return netip.AddrPort{}, fmt.Errorf("a sink at %q", where)
	}
	return netip.ParseAddrPort(parts[0] + ":" + parts[1])
}
