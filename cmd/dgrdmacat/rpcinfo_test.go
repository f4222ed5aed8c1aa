package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
)

// portMapper is a port mapper at an address of the loopback network, until the test ends. The test is skipped where it may not be there.
func portMapper(t *testing.T, host string, known func() portmap.Mappings) *rpc.Server {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, portmap.Port))
	if errors.Is(err, syscall.EACCES) {
		t.Skip("port 111 needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil)
	s.Handle(portmap.Program, rpc.HandlerFunc(func(_ context.Context, c *rpc.Call) error {
		if c.Procedure == portmap.ProcDump {
			return c.Reply(known())
		}
		var asked portmap.Mapping
		if err := c.Decode(&asked); err != nil {
			return err
		}
		port := uint16(0)
		for _, m := range known() {
			if m.Program == asked.Program && m.Protocol == asked.Protocol {
				port = m.Port
			}
		}
		c.Results().Uint32(uint32(port))
		return nil
	}))
	go s.ServeTCP(l)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestRPCInfo checks that programs are called over both transports, in one version and in all that there are, and what is said over RDMA
// of the connection, and of what does not answer.
func TestRPCInfo(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), &nfs3.ServerOptions{})
	r.overBoth(func(t *testing.T, at string) {
		for _, args := range [][]string{{at, "nfs"}, {at, "100003", "3"}, {at, "mount", "3"}} {
			code, out, stderr := runFor(t, patient(t), append([]string{"rpcinfo"}, args...)...)
			terms := ""
			if strings.HasPrefix(at, "rdma:") {
				terms = " by RPC-over-RDMA version 2, with 64 credits, and inline up to 8192 bytes of a call and 8192 of a reply"
			}
			want := regexp.MustCompile(`^(nfs \(100003\)|mountd \(100005\)) version 3 answers at ` + regexp.QuoteMeta(at) + ` in \d+ us` + terms + "\n$")
			if code != exitOK || stderr != "" || !want.MatchString(out) {
				t.Errorf("%v: code %d, %s%s", args, code, out, stderr)
			}
		}
		_, out, _ := runFor(t, patient(t), "rpcinfo", "--json", at, "nfs")
		var a rpcAnswer
		if err := json.Unmarshal([]byte(out), &a); err != nil || a.Program != 100003 || a.Name != "nfs" || a.Version != 3 || a.Address != at || a.AnswerUS <= 0 || (a.OverRDMA != nil) != strings.HasPrefix(at, "rdma:") {
			t.Errorf("%v: %s", err, out)
		}
		r.wants(t, []string{"rpcinfo", at, "nlockmgr"}, exitError, "", at+": nlockmgr (100021): the server does not have this program\n")
		r.wants(t, []string{"rpcinfo", at, "nfs", "4"}, exitError, "", at+": nfs (100003): the server has version 3 of this program only\n")
	})
	silent := stranger(t, func(nc net.Conn) { io.Copy(io.Discard, nc) })
	r.wants(t, []string{"rpcinfo", "--wait", "3s", silent, "nfs"}, exitError, "", silent+": the server has not answered for 3s (--wait)")
	r.wants(t, []string{"rpcinfo", nobodyThere, "nfs"}, exitError, "", nobodyThere+": nothing listens at that port: connection refused; is the server started there")
	for args, says := range map[string]string{
		"": "need ADDRESS [PROGRAM [VERSION]]", "h nfs 3 4": "need ADDRESS", "rdma:h": "port mappers are reached over TCP", "h nothing": "PROGRAM nothing: need a number, or one of mountd, nfs, ",
		"h nfs three": "VERSION three: need a number", "tcp:h:0 nfs": `port "0" is no number`, "h --wait 0": "need 1s to 1h", "tcp: nfs": "there is no host in it: need HOST",
	} {
		r.wants(t, append([]string{"rpcinfo"}, strings.Fields(args)...), exitUsage, "", says)
	}
}

// TestRPCInfoPortMapper checks the list of a port mapper, as lines and as objects, and that a program is called where the port mapper says.
func TestRPCInfoPortMapper(t *testing.T) {
	t.Parallel()
	const host = "127.0.78.1" // of the machine itself, with ports that no other program has
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := rpc.NewServer(nil)
	nfs3.NewServer(localfs.NewMemory(nil), nil).Register(s)
	go s.ServeTCP(l)
	defer s.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	portMapper(t, host, func() portmap.Mappings {
		return portmap.Mappings{
			{Program: 100000, Version: 2, Protocol: portmap.TCP, Port: 111},
			{Program: 100003, Version: 3, Protocol: portmap.TCP, Port: port},
			{Program: 300019, Version: 1, Protocol: portmap.UDP, Port: 737},
		}
	})
	r := new(nfsRig)
	code, out, stderr := runFor(t, patient(t), "rpcinfo", host)
	want := regexp.MustCompile(`^   program version transport  port  name
    100000       2       tcp   111  portmapper
    100003       3       tcp \d{5}  nfs
    300019       1       udp   737
$`)
	if code != exitOK || !want.MatchString(out) {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	if _, out, _ := runFor(t, patient(t), "rpcinfo", "--json", "tcp:"+host); !strings.HasPrefix(out, `{"program":100000,"name":"portmapper","version":2,"transport":"tcp","port":111}`+"\n") || strings.Count(out, "\n") != 3 {
		t.Error(out)
	}
	if code, out, stderr := runFor(t, patient(t), "rpcinfo", host, "nfs"); code != exitOK || !strings.HasPrefix(out, "nfs (100003) version 3 answers at tcp:"+l.Addr().String()+" in ") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	if code, out, stderr := runFor(t, patient(t), "rpcinfo", host, "portmapper"); code != exitOK || !strings.HasPrefix(out, "portmapper (100000) version 2 answers at tcp:"+host+":111 in ") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	r.wants(t, []string{"rpcinfo", host, "status"}, exitError, "", "tcp:"+host+":111: the port mapper does not know status (100024) over TCP: dgrdmacat rpcinfo "+host+" lists what it knows\n")
	r.wants(t, []string{"rpcinfo", "tcp:127.0.79.1", "nfs"}, exitError, "", "tcp:127.0.79.1:111: there is no port mapper (rpcbind) that says where nfs (100003) is: name its port, as in tcp:127.0.79.1:2049\n")
	r.wants(t, []string{"rpcinfo", "127.0.79.1"}, exitError, "", "tcp:127.0.79.1:111: nothing listens at that port: connection refused; is a port mapper (rpcbind) started there")
}
