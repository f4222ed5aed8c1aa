package portmap_test

import (
	"context"
	"errors"
	"net"
	"os"
	"reflect"
	"testing"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/xdr"
)

func TestMain(m *testing.M) { os.Exit(fixture.Run(m)) }

// results are words that a port mapper answers.
type results []uint32

func (r results) MarshalXDR(e *xdr.Encoder) {
	for _, w := range r {
		e.Uint32(w)
	}
}

// serve returns a client of a port mapper that answers as h does.
func serve(t *testing.T, h rpc.HandlerFunc) *rpc.Client {
	s := rpc.NewServer(nil)
	s.Handle(portmap.Program, h)
	here, there := net.Pipe()
	go s.ServeConn(there)
	c := rpc.NewClient(here, nil)
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c
}

// TestPortMapper checks what a port mapper is asked, octet by octet, and that its answers are understood.
func TestPortMapper(t *testing.T) {
	nfs := &rpc.Program{Number: 100003, Version: 3, Name: "NFS"}
	known := portmap.Mappings{{100000, 2, portmap.TCP, 111}, {100003, 3, portmap.TCP, 2049}, {100003, 3, portmap.UDP, 2049}}
	c := serve(t, func(ctx context.Context, c *rpc.Call) error {
		switch c.Procedure {
		case portmap.ProcDump:
			return c.Reply(results{1, 100000, 2, 6, 111, 1, 100003, 3, 6, 2049, 1, 100003, 3, 17, 2049, 0})
		case portmap.ProcGetPort:
			var asked portmap.Mapping
			if err := c.Decode(&asked); err != nil {
				return err
			}
			for _, m := range known {
				if m.Program == asked.Program && m.Version == asked.Version && m.Protocol == asked.Protocol {
					return c.Reply(results{uint32(m.Port)})
				}
			}
			return c.Reply(results{0})
		}
		return rpc.ErrProcedureUnavailable
	})
	ctx := context.Background()
	if all, err := portmap.Dump(ctx, c); err != nil || !reflect.DeepEqual(all, known) {
		t.Errorf("%v, %v", all, err)
	}
	if port, err := portmap.GetPort(ctx, c, nfs, portmap.TCP); err != nil || port != 2049 {
		t.Errorf("%d, %v", port, err)
	}
	nfs.Version = 4
	_, err := portmap.GetPort(ctx, c, nfs, portmap.UDP)
	if want := "look up the port of NFS version 4 over udp: the program is not registered"; !errors.Is(err, portmap.ErrNotRegistered) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	var e xdr.Encoder
	known.MarshalXDR(&e)
	var d xdr.Decoder
	d.Reset(e.Bytes(), nil)
	var again portmap.Mappings
	if again.UnmarshalXDR(&d); d.Done() != nil || !reflect.DeepEqual(again, known) {
		t.Errorf("%v", again)
	}
}

// TestHostilePortMapper checks that a list without end, one that is cut, and ports and booleans that are none are errors (ONC-008).
func TestHostilePortMapper(t *testing.T) {
	var answer results
	c := serve(t, func(ctx context.Context, c *rpc.Call) error { return c.Reply(answer) })
	var endless results
	for range portmap.MaxMappings + 1 {
		endless = append(endless, 1, 1, 1, 6, 1)
	}
	for name, words := range map[string]results{
		"without end": append(endless, 0), "cut": {1, 100000, 2, 6}, "without the last word": {1, 100000, 2, 6, 111}, "a port": {1, 100000, 2, 6, 65536, 0}, "a boolean": {2, 100000, 2, 6, 111, 0}, "nothing": nil,
	} {
		answer = words
		if _, err := portmap.Dump(context.Background(), c); !errors.Is(err, xdr.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	answer = results{1 << 16}
	if _, err := portmap.GetPort(context.Background(), c, portmap.Program, portmap.TCP); !errors.Is(err, xdr.ErrInvalid) {
		t.Error(err)
	}
	answer = endless[:5*portmap.MaxMappings]
	answer = append(answer, 0)
	if all, err := portmap.Dump(context.Background(), c); err != nil || len(all) != portmap.MaxMappings {
		t.Errorf("%d, %v", len(all), err)
	}
}
