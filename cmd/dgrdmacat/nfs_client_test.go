package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
	"github.com/dgrdma/dgrdma/xdr"
)

// octets are arguments or results that are passed on.
type octets []byte

func (o *octets) MarshalXDR(e *xdr.Encoder)   { e.Fixed(*o) }
func (o *octets) UnmarshalXDR(d *xdr.Decoder) { *o = d.Fixed(len(d.Left())) }

// TestNFSPortMapper checks that a server whose MOUNT is at another port, as Linux's is, is found by the port mapper: also NFS itself, if
// it is not at its usual port; and what is said where there is no port mapper.
func TestNFSPortMapper(t *testing.T) {
	t.Parallel()
	const host = "127.0.77.1" // of the machine itself, with ports that no other program has
	var known portmap.Mappings
	mapper := portMapper(t, host, func() portmap.Mappings { return known })
	files := localfs.NewMemory(nil)
	volume, err := nfs3.NewVolume(t.Context(), files, nil)
	if err == nil {
		err = volume.WriteFile("file", []byte("hello\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	listen := func(address string, handle func(s *rpc.Server)) (port string) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		s := rpc.NewServer(nil)
		handle(s)
		go s.ServeTCP(l)
		t.Cleanup(func() { s.Close() })
		_, port, _ = net.SplitHostPort(l.Addr().String())
		return port
	}
	both, err := rpc.Dial(t.Context(), strings.TrimSuffix(serveNFS(t, files, nil).tcp, "/export"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	for _, p := range []*rpc.Program{nfs3.Program, nfs3.MountProgram} {
		port := listen(host+":0", func(s *rpc.Server) {
			s.Handle(p, rpc.HandlerFunc(func(ctx context.Context, c *rpc.Call) error {
				args, results := octets(c.Args().Left()), octets{}
				if err := both.Bind(p, c.Auth).Call(ctx, c.Procedure, &args, &results, nil); err != nil {
					return err
				}
				return c.Reply(&results)
			}))
		})
		n, _ := strconv.Atoi(port)
		known = append(known, portmap.Mapping{Program: p.Number, Version: p.Version, Protocol: portmap.TCP, Port: uint16(n)})
	}
	r := new(nfsRig)
	r.wants(t, []string{"nfs", "cat", "tcp:" + host + "/export/file"}, exitOK, "hello\n", "")
	at := "tcp:" + host + ":" + strconv.Itoa(int(known[0].Port))
	r.wants(t, []string{"nfs", "cat", at + "/export/file"}, exitOK, "hello\n", "")
	known = known[:1]
	r.wants(t, []string{"nfs", "cat", at + "/export/file"}, exitError, "", at+" does not have MOUNT, and the port mapper of its host does not say where that is: ")
	mapper.Close()
	r.wants(t, []string{"nfs", "cat", at + "/export/file"}, exitError, "", "connection refused\n")
}

// TestNFSServerGone checks that a command ends within --wait if the server is not there, is silent, or is no server of NFS, over both
// transports.
func TestNFSServerGone(t *testing.T) {
	t.Parallel()
	nothing := strings.TrimPrefix(nobodyThere, "tcp:")
	silent := strings.TrimPrefix(stranger(t, func(nc net.Conn) { io.Copy(io.Discard, nc) }), "tcp:")
	full := strings.TrimPrefix(overcrowded(t), "tcp:")
	r := new(nfsRig)
	for address, says := range map[string]string{
		"tcp:" + nothing: "nothing listens at that port: connection refused; is a server of NFS started there", "rdma:" + nothing: "nothing listens at that port",
		"tcp:" + silent: "the server has not answered for 3s (--wait); is it up, and is that its port for tcp?\n", "rdma:" + silent: "the server has not answered for 3s (--wait)",
		"tcp:" + full: " for 3s (--wait); is", "rdma:" + full: " for 3s (--wait); is",
		silentRDMA(t):      "the server has not answered for 3s (--wait)",
		"tcp:none.invalid": "nfs ls: tcp:none.invalid:2049: no host of that name is known\n",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()                                                                                // most of it is waiting
			r.wants(t, []string{"nfs", "ls", "--wait", "3s", address + "/export"}, exitError, "", says) // a busy machine connects within that
		})
	}
	for _, wait := range []string{"0", "999ms", "2h"} {
		r.wants(t, []string{"nfs", "ls", "--wait", wait, "tcp:" + nothing}, exitUsage, "", ": need 1s to 1h")
	}
}

// TestWrongPort checks that commands say at once that a port is the other transport's, or that of another protocol: within a hundredth of
// --wait.
func TestWrongPort(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	answers := func(with string) string {
		return strings.TrimPrefix(stranger(t, func(nc net.Conn) {
			nc.Read(make([]byte, 4))
			io.WriteString(nc, with)
			nc.Close()
		}), "tcp:")
	}
	atRDMA, atTCP := strings.TrimPrefix(strings.TrimSuffix(r.rdma, "/export"), "rdma:"), strings.TrimPrefix(strings.TrimSuffix(r.tcp, "/export"), "tcp:")
	const http = "HTTP/1.1 400 Bad Request\r\n\r\n"
	for transport, ports := range map[string][]string{"rdma": {atTCP, answers(""), answers(http)}, "tcp": {atRDMA, answers(""), answers(http)}} {
		for _, port := range ports {
			says := "rdma:" + port + ": the server accepts TCP, but does not speak RDMA (iWARP) there: is that its port for TCP, as in tcp:" + port + ", or that of another program?\n"
			if transport == "tcp" {
				says = "tcp:" + port + ": the server accepts TCP, but does not speak ONC RPC there: is that its port for RDMA, as in rdma:" + port + ", or that of another program?\n"
			}
			began := time.Now()
			r.wants(t, []string{"nfs", "ls", "--wait", "1h", transport + ":" + port + "/export"}, exitError, "", "dgrdmacat nfs ls: "+says)
			r.wants(t, []string{"rpcinfo", "--wait", "1h", transport + ":" + port, "nfs"}, exitError, "", "dgrdmacat rpcinfo: "+says)
			if after := time.Since(began); after > time.Hour/100 {
				t.Errorf("%s: after %v", transport, after)
			}
		}
	}
}

// TestNFSServerEnds checks that a command that reads ends after --wait when the server is stopped or killed, and at once at SIGINT, over
// both transports.
func TestNFSServerEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := random(2, 40<<20)
	if err := os.WriteFile(filepath.Join(dir, "big"), big, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"stopped", "killed", "interrupted"} {
		for _, transport := range rpcTransports {
			t.Run(how+" over "+transport, func(t *testing.T) {
				server, rdma, tcp := startNFS(t, dir)
				at := map[string]string{"rdma": rdma, "tcp": tcp}[transport]
				p := asProcess(t, "nfs", "cat", "--wait", "2s", at+"/export/big")
				p.Stdout = nil
				out, err := p.StdoutPipe() // which blocks the command
				if err != nil {
					t.Fatal(err)
				}
				p.start()
				if _, err := io.ReadFull(out, make([]byte, 1<<20)); err != nil {
					t.Fatalf("%v: %s", err, &p.err)
				}
				if how == "killed" {
					server.Process.Kill()
				} else {
					server.stop(t)
				}
				began := time.Now()
				if how == "interrupted" {
					p.Process.Signal(os.Interrupt)
				}
				io.Copy(io.Discard, out)
				code, says := exitError, "dgrdmacat nfs cat: "+at+"/export/big: the server has not answered for 2s (--wait); is it up"
				if how == "killed" {
					says = strings.Replace(says, "; is it up", ", and nothing listens at that port now: was it ended?", 1)
				}
				if how == "interrupted" {
					code, says = exitInterrupted, "dgrdmacat nfs cat: interrupted\n"
				}
				if got := p.code(); got != code || !strings.Contains(p.err.String(), says) || time.Since(began) > patience/2 {
					t.Errorf("code %d after %v: %s", got, time.Since(began), &p.err)
				}
			})
		}
	}
}
