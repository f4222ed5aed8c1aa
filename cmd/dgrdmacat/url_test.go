package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const someUUID = "12345678-9abc-def0-1234-56789abcdef0"

func TestURLExplains(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"ocpi-udp-rdma:10.0.0.2;7100;1048576.2.16?profile=fpga&giveup=2&speed=high&ring=on", `ocpi-udp-rdma:10.0.0.2;7100;1048576.2.16?profile=fpga&giveup=2&speed=high&ring=on
  dialect       spec: the specification's
  wire          UDP
  address       10.0.0.2
  port          7100
  memory        1048576 bytes (1 MiB)
  id            2
  ids           16
  uuid          none
  option        giveup=2: wrong: endpoint string says giveup=2: need a time of 1ms or more, such as 10s
  option        profile=fpga: kind of peers: native, fpga, opencpi, opencpi2 or opencpi-legacy (default native)
  option        ring=on: wrong: endpoint string says ring=on, which means something over Ethernet and nothing over UDP: leave it out
  option        speed=high: unknown; an endpoint does not open with it
  reachable     yes
  in opencpi    none: endpoint has no uuid, --uuid new makes one
  in legacy     none: endpoint has no uuid, --uuid new makes one
  in prefixed   none: dialect is for Ethernet only
  in datagram2  none: dialect is for Ethernet only
  in appendix   none: dialect is for Ethernet only
  in short      udp:10.0.0.2:7100?giveup=2&profile=fpga&ring=on&speed=high
`},
		{"--uuid " + someUUID + " ocpi-ether-rdma:eth0/02:00:00:00:00:0A;1000.9.9", `ocpi-ether-rdma:eth0/02:00:00:00:00:0A;1000.9.9
  dialect       spec: the specification's
  wire          raw Ethernet
  interface     eth0
  mac           02:00:00:00:00:0a
  memory        1000 bytes
  id            9
  ids           9
  uuid          ` + someUUID + `
  reachable     yes
  note          the interface is one of the endpoint's machine; peers go by the MAC address
  note          the id is the highest: OpenCPI's C++ hosts need one below the number of ids
  note          OpenCPI takes 9 as the last number only where OCPI_MAX_MAILBOX=9 is set; otherwise it has to be 10
  in opencpi    ocpi-ether-rdma:eth0/02:00:00:00:00:0a;` + someUUID + `.1000.9.9
  in legacy     ocpi-ether-rdma:eth0/02:00:00:00:00:0a;` + someUUID + `.1000.9.9
  in prefixed   ocpi-ether-rdma:Ether:eth0/02:00:00:00:00:0a;` + someUUID + `.1000.9.9
  in datagram2  ocpi-ether-rdma:;` + someUUID + `.1000.9.9
  in appendix   ocpi-ether-l2-rdma:02:00:00:00:00:0a:1000.9.9
  in short      ether:eth0/02:00:00:00:00:0a
`},
		{"udp", `udp
  dialect       short: what people type
  wire          UDP
  address       not said
  port          any that is free
  reachable     no, missing: an IP address, a UDP port, the memory's size and the endpoint's id
  note          an endpoint that opens with it is at every address of this machine: whoever reaches any of them reaches it
  in spec       none: endpoint has no IP address
  in opencpi    none: endpoint has no IP address
  in legacy     none: endpoint has no IP address
  in prefixed   none: dialect is for Ethernet only
  in datagram2  none: dialect is for Ethernet only
  in appendix   none: dialect is for Ethernet only
`},
	} {
		code, out, stderr := runFor(t, t.Context(), append([]string{"url"}, strings.Fields(c.args)...)...)
		wrong := strings.Count(c.want, ": wrong: ") + strings.Count(c.want, ": unknown; ") // options: a line of each
		if (code == exitOK) != (wrong == 0) || out != c.want || strings.Count(stderr, "\n") != wrong {
			t.Errorf("url %s: code %d\n%s%s", c.args, code, out, stderr)
		}
	}
}

func TestURLNotes(t *testing.T) {
	for s, want := range map[string]string{
		"udp:127.0.0.1:7100":                          "only this machine reaches it",
		"udp:7100":                                    "at every address of this machine",
		"udp:[::]:7100":                               "at every address of this machine",
		"udp:10.0.0.1:7100":                           "yes\n  note          whoever dials it asks it for its memory's size and its id",
		"udp:camera.local:7100":                       "yes\n  note          the host's name is looked up",
		"ether:02:00:00:00:00:01":                     "no, missing: the memory's size and the endpoint's id\n",
		"udp:224.0.0.1:7100":                          "a group's",
		"ether:01:00:5e:00:00:01":                     "a group's",
		"ocpi-udp-rdma:[fe80::1];7100;64.1.2":         "needs the interface too",
		"ocpi-udp-rdma:0.0.0.0;7100;64.1.2":           "no, missing: an IP address\n",
		"ocpi-ether-rdma:;" + someUUID + ".65536.1.3": "no, missing: a MAC address\n",
		"ocpi-udp-rdma:10.0.0.1:7100;" + someUUID + ".3145728.1.9": "3145728 bytes (3 MiB)",
	} {
		if code, out, stderr := runFor(t, t.Context(), "url", s); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("url %s: code %d: %s%s, want %q", s, code, out, stderr, want)
		}
	}
}

func TestURLConverts(t *testing.T) {
	const tail = ";" + someUUID + ".65536.2.10"
	for _, c := range []struct{ args, want string }{
		{"--dialect spec ocpi-udp-rdma:10.0.0.1:7100" + tail, "ocpi-udp-rdma:10.0.0.1;7100;65536.2.10\n"},
		{"--dialect legacy ocpi-udp-rdma:10.0.0.1:7100" + tail, "ocpi-udp-rdma:10.0.0.1;7100" + tail + "\n"},
		{"--dialect opencpi ocpi-udp-rdma:10.0.0.1;7100;65536.2.10 --uuid " + someUUID, "ocpi-udp-rdma:10.0.0.1:7100" + tail + "\n"},
		{"--dialect short ocpi-udp-rdma:10.0.0.1;7100;65536.2.10?mtu=9000", "udp:10.0.0.1:7100?mtu=9000\n"},
		{"--dialect prefixed ocpi-ether-rdma:e0/02:00:00:00:00:01" + tail, "ocpi-ether-rdma:Ether:e0/02:00:00:00:00:01" + tail + "\n"},
		{"--dialect datagram2 ocpi-ether-rdma:e0/02:00:00:00:00:01" + tail, "ocpi-ether-rdma:" + tail + "\n"},
		{"--dialect appendix ocpi-ether-rdma:e0/02:00:00:00:00:01" + tail + " ether:02:00:00:00:00:03",
			"ocpi-ether-l2-rdma:02:00:00:00:00:01:65536.2.10\nocpi-ether-l2-rdma:02:00:00:00:00:03\n"},
	} {
		code, out, stderr := runFor(t, t.Context(), append([]string{"url"}, strings.Fields(c.args)...)...)
		if code != exitOK || out != c.want || stderr != "" {
			t.Errorf("url %s: code %d: %q %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
	code, out, _ := runFor(t, t.Context(), "url", "--uuid", "new", "--dialect", "opencpi", "ocpi-udp-rdma:10.0.0.1;7100;65536.2.10")
	if code != exitOK || !regexp.MustCompile(`^ocpi-udp-rdma:10\.0\.0\.1:7100;[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.65536\.2\.10\n$`).MatchString(out) {
		t.Errorf("code %d: %q", code, out)
	}
}

func TestURLSaysWhereAStringIsWrong(t *testing.T) {
	long := "udp?a=" + strings.Repeat("b", 400) + "&=c"
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"ocpi-udp-rdma:10.0.0.2;7100;1048576.0.16"}, `dgrdmacat url: byte 36: expected an endpoint id from 1 to 65535
  ocpi-udp-rdma:10.0.0.2;7100;1048576.0.16
                                      ^
`},
		{[]string{""}, "dgrdmacat url: byte 0: expected ocpi-ether-rdma, ocpi-udp-rdma, ocpi-ether-l2-rdma, ether or udp\n  \n  ^\n"},
		{[]string{"ether:e\x01\xff0"}, `dgrdmacat url: byte 7: expected an interface name without control characters, space, '/', ':', ';' and '?'
  ether:e\x01\xff0
         ^
`},
		{[]string{"ether:\xc3\xa40/x"}, `dgrdmacat url: byte 10: expected a MAC address: six fields of two hexadecimal digits
  ether:\xc3\xa40/x
                  ^
`},
		{[]string{long}, `dgrdmacat url: byte 407: expected an option key=value
  ...` + strings.Repeat("b", 59) + `&=c
` + strings.Repeat(" ", 65) + "^\n"},
		{[]string{"udp:-", "udp:7100", "ether"}, `dgrdmacat url: byte 4: expected an IPv4 address, an IPv6 address in brackets, or the name of a host
  udp:-
      ^
byte 5: expected ':' and an interface name
  ether
       ^
`},
		{[]string{"--dialect", "opencpi", "ocpi-udp-rdma:10.0.0.1;7100;65536.2.9"}, "dgrdmacat url: dgrdma: format endpoint string as opencpi: endpoint has no uuid, --uuid new makes one\n"},
	} {
		code, out, stderr := runFor(t, t.Context(), append([]string{"url"}, c.args...)...)
		if code != exitUsage || stderr != c.stderr {
			t.Errorf("url %q: code %d, %q\n%s, want\n%s", c.args, code, out, stderr, c.stderr)
		}
	}
}

func TestURLAsJSON(t *testing.T) {
	code, out, stderr := runFor(t, t.Context(), "url", "--json", "ocpi-udp-rdma:10.0.0.2;7100;64.2.16?mtu=9000&x=1", "udp:-")
	if code != exitUsage || !strings.Contains(stderr, "byte 4") {
		t.Errorf("code %d: %s", code, stderr)
	}
	lines := strings.SplitAfter(out, "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines)-1, out)
	}
	var got [2]map[string]any
	for i := range got {
		if err := json.Unmarshal([]byte(lines[i]), &got[i]); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]any{
		"wire": "udp", "dialect": "spec", "address": "10.0.0.2", "port": 7100.0, "size": 64.0, "id": 2.0, "max": 16.0, "reachable": true,
		"dialects": map[string]any{"short": "udp:10.0.0.2:7100?mtu=9000&x=1"},
	} {
		if !reflect.DeepEqual(got[0][key], want) {
			t.Errorf("%s is %v, want %v", key, got[0][key], want)
		}
	}
	options := got[0]["options"].([]any)
	if known, unknown := options[0].(map[string]any), options[1].(map[string]any); known["key"] != "mtu" || known["error"] != nil ||
		unknown["meaning"] != nil || !strings.Contains(unknown["error"].(string), `option "x"`) {
		t.Errorf("options %v", options)
	}
	if want := (map[string]any{"offset": 4.0, "expected": "an IPv4 address, an IPv6 address in brackets, or the name of a host"}); !reflect.DeepEqual(got[1]["error"], want) {
		t.Errorf("error %v", got[1]["error"])
	}
}

func TestURLUsage(t *testing.T) {
	for args, want := range map[string]string{
		"": "which string?", "--dialect latin udp": "there are spec, opencpi", "--dialect spec --json udp": "--json has all dialects",
		"nonsense": "byte 0", "udp:7100?gso": "byte 12",
		"--uuid 1234 udp": "need 8-4-4-4-12", "--speed udp": "-speed",
	} {
		if code, out, stderr := runFor(t, t.Context(), strings.Fields("url "+args)...); code != exitUsage || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("url %s: code %d, %q, %q", args, code, out, stderr)
		}
	}
}

// TestIDsForOpenCPI: what is printed for OpenCPI's software it takes, or it is said why not and what to do.
func TestIDsForOpenCPI(t *testing.T) {
	for _, c := range []struct{ args, out, says string }{
		{"--dialect opencpi ocpi-udp-rdma:10.0.0.1;7100;65536.3.65535", "ocpi-udp-rdma:10.0.0.1:7100;" + someUUID + ".65536.3.10\n",
			"for OpenCPI the last number is 10 and not 65535: its software takes only the number of ids that it has itself, which is 10 unless OCPI_MAX_MAILBOX is set there\n"},
		{"--dialect prefixed ocpi-ether-rdma:e0/02:00:00:00:00:01;65536.9.65535", "ocpi-ether-rdma:Ether:e0/02:00:00:00:00:01;" + someUUID + ".65536.9.10\n", "for OpenCPI the last number is 10 and not 65535"},
		{"--dialect legacy ocpi-udp-rdma:10.0.0.1;7100;65536.3.16", "ocpi-udp-rdma:10.0.0.1;7100;" + someUUID + ".65536.3.16\n",
			"OpenCPI takes 16 as the last number only where OCPI_MAX_MAILBOX=16 is set; otherwise it has to be 10\n"},
		{"--dialect opencpi ocpi-udp-rdma:10.0.0.1;7100;65536.3.0", "ocpi-udp-rdma:10.0.0.1:7100;" + someUUID + ".65536.3.0\n", ""},
		{"--dialect spec ocpi-udp-rdma:10.0.0.1;7100;65536.200.65535", "ocpi-udp-rdma:10.0.0.1;7100;65536.200.65535\n", ""},
		{"--dialect opencpi ocpi-udp-rdma:10.0.0.1;7100;65536.10.65535", "",
			"dgrdmacat url: dgrdma: format endpoint string as opencpi: endpoint has id 10, and OpenCPI takes 1 to 9: open it with one of them\n"},
	} {
		code, out, stderr := runFor(t, t.Context(), append([]string{"url", "--uuid", someUUID}, strings.Fields(c.args)...)...)
		if (code == exitOK) != (c.out != "") || out != c.out || !strings.HasPrefix(stderr, c.says) || (stderr == "") != (c.says == "") {
			t.Errorf("url %s: code %d: %q %q", c.args, code, out, stderr)
		}
	}
	code, out, stderr := runFor(t, t.Context(), "url", "ocpi-udp-rdma:10.0.0.1;7100;65536.200.65535")
	if code != exitOK || stderr != "" || !strings.Contains(out, "in opencpi    none: endpoint has id 200, and OpenCPI takes 1 to 9: open it with one of them\n") ||
		!strings.Contains(out, "in prefixed   none: dialect is for Ethernet only\n") {
		t.Errorf("code %d: %s%s", code, out, stderr)
	}
	code, out, stderr = runFor(t, t.Context(), "url", "--uuid", someUUID, "ocpi-udp-rdma:10.0.0.1;7100;65536.3.65535")
	if code != exitOK || stderr != "" || strings.Count(out, "note          for OpenCPI the last number is 10 and not 65535") != 1 || strings.Count(out, ".65536.3.10\n") != 2 {
		t.Errorf("code %d: %s%s", code, out, stderr)
	}
}

// TestIDOfThisSideForOpenCPI: who expects OpenCPI's software is told of an id that it fails with, and of no other.
func TestIDOfThisSideForOpenCPI(t *testing.T) {
	t.Parallel()
	at := free(t)
	const says = ": OpenCPI's software, which peers of the kind opencpi are, takes 1 to 9 and fails with others; --id gives it one of them\n"
	for args, id := range map[string]string{
		"serve --for 1ms --accept any --profile opencpi --id 12 udp:127.0.0.1":                                      "12",
		"serve --for 1ms --accept any --profile opencpi --id 9 udp:127.0.0.1":                                       "",
		"serve --for 1ms --accept any --profile fpga --id 12 udp:127.0.0.1":                                         "",
		"serve --for 1ms --accept any --id 12 udp:127.0.0.1":                                                        "",
		"serve --for 1ms --peer " + localString(at, 4096, 2) + "?profile=opencpi --id 12 udp:127.0.0.1":             "12",
		"write --profile opencpi --id 77 --addr 0 --text x --to " + localString(at, 4096, 2) + "?giveup=10ms":       "77",
		"write --profile opencpi --addr 0 --text x --to " + localString(at, 4096, 2) + "?giveup=10ms":               "",
		"write --profile opencpi-legacy --id 9 --flag-addr 0 --to " + localString(at, 4096, 2) + "?giveup=10ms":     "",
		"write --id 77 --addr 0 --text x --to " + localString(at, 4096, 2) + "?giveup=10ms":                         "",
		"write --local udp:127.0.0.1 --id 3 --profile opencpi2 --flag-addr 0 --to " + localString(at, 4096, 2) + "": "",
	} {
		_, _, stderr := runFor(t, t.Context(), strings.Fields(args)...)
		if want := "the id of this side is " + id + says; strings.Contains(stderr, "OpenCPI's software") != (id != "") || id != "" && !strings.Contains(stderr, want) {
			t.Errorf("%s: %s", args, stderr)
		}
	}
}
