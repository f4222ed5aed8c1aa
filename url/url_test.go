package url

import (
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"testing"
)

const testUUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"

var (
	_ interface{ MarshalText() ([]byte, error) } = Endpoint{}
	_ interface{ UnmarshalText([]byte) error }   = (*Endpoint)(nil)
)

var (
	hostMAC = MACFrom6([6]byte{0x00, 0x0c, 0x29, 0xe2, 0x30, 0x24})
	cardMAC = MACFrom6([6]byte{0x80, 0x1f, 0x12, 0x7c, 0xd7, 0xfa})
)

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func anyAddr(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, port) }

// DGRDMA-046: the forms of sections 5.1.3, 5.2.3 and 6 of the specification,
// and those of deployed software.
var accepted = []struct {
	name      string
	text      string
	want      Endpoint
	canonical string // if not text
}{
	// The specification.
	{"spec-ether", "ocpi-ether-rdma:eth0/00:0c:29:e2:30:24;131072.2.10",
		Endpoint{Scheme: Ether, Dialect: Spec, Interface: "eth0", MAC: hostMAC, Size: 131072, ID: 2, Max: 10}, ""},
	{"spec-udp", "ocpi-udp-rdma:192.168.1.5;40123;3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: Spec, Addr: addr("192.168.1.5:40123"), Size: 3145728, ID: 1, Max: 10}, ""},
	{"spec-udp-ipv6", "ocpi-udp-rdma:[fe80::1%eth0];7000;4096.1.2",
		Endpoint{Scheme: UDP, Dialect: Spec, Addr: addr("[fe80::1%eth0]:7000"), Size: 4096, ID: 1, Max: 2}, ""},
	{"spec-udp-incomplete", "ocpi-udp-rdma:10.0.0.1;7000",
		Endpoint{Scheme: UDP, Dialect: Spec, Addr: addr("10.0.0.1:7000")}, ""},
	{"spec-ether-incomplete", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa",
		Endpoint{Scheme: Ether, Dialect: Spec, Interface: "eth0", MAC: cardMAC}, ""},
	{"spec-bare-mac", "ocpi-ether-rdma:00:0C:29:E2:30:24;131072.2.10",
		Endpoint{Scheme: Ether, Dialect: Spec, MAC: hostMAC, Size: 131072, ID: 2, Max: 10},
		"ocpi-ether-rdma:00:0c:29:e2:30:24;131072.2.10"},
	{"appendix", "ocpi-ether-l2-rdma:00:0c:29:e2:30:24:131072.2.10",
		Endpoint{Scheme: Ether, Dialect: Appendix, MAC: hostMAC, Size: 131072, ID: 2, Max: 10}, ""},
	{"appendix-incomplete", "ocpi-ether-l2-rdma:00:0c:29:e2:30:24",
		Endpoint{Scheme: Ether, Dialect: Appendix, MAC: hostMAC}, ""},

	// opencpi-peers.md section 9, examples and table.
	{"opencpi-udp", "ocpi-udp-rdma:192.168.1.5:40123;" + testUUID + ".3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: OpenCPI, Addr: addr("192.168.1.5:40123"), Size: 3145728, ID: 1, Max: 10, UUID: testUUID}, ""},
	{"opencpi-ether", "ocpi-ether-rdma:eth0/00:0c:29:e2:30:24;" + testUUID + ".131072.2.10",
		Endpoint{Scheme: Ether, Dialect: OpenCPI, Interface: "eth0", MAC: hostMAC, Size: 131072, ID: 2, Max: 10, UUID: testUUID}, ""},
	{"opencpi-bare-mac", "ocpi-ether-rdma:00:0c:29:e2:30:24;" + testUUID + ".131072.2.10",
		Endpoint{Scheme: Ether, Dialect: OpenCPI, MAC: hostMAC, Size: 131072, ID: 2, Max: 10, UUID: testUUID}, ""},
	{"opencpi-udp-without-uuid", "ocpi-udp-rdma:192.168.1.5:40123;3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: OpenCPI, Addr: addr("192.168.1.5:40123"), Size: 3145728, ID: 1, Max: 10}, ""},
	{"opencpi-udp-ipv6", "ocpi-udp-rdma:[fe80::1%eth0]:7000;4096.1.2",
		Endpoint{Scheme: UDP, Dialect: OpenCPI, Addr: addr("[fe80::1%eth0]:7000"), Size: 4096, ID: 1, Max: 2}, ""},
	{"opencpi-udp-incomplete", "ocpi-udp-rdma:10.0.0.1:7000",
		Endpoint{Scheme: UDP, Dialect: OpenCPI, Addr: addr("10.0.0.1:7000")}, ""},
	{"spec-udp-name", "ocpi-udp-rdma:camera.local;7100;65536.9.65535",
		Endpoint{Scheme: UDP, Dialect: Spec, Host: "camera.local", Addr: anyAddr(7100), Size: 65536, ID: 9, Max: 65535}, ""},
	{"opencpi-udp-name", "ocpi-udp-rdma:fpga_1:7100;" + testUUID + ".65536.9.10",
		Endpoint{Scheme: UDP, Dialect: OpenCPI, Host: "fpga_1", Addr: anyAddr(7100), Size: 65536, ID: 9, Max: 10, UUID: testUUID}, ""},
	{"legacy-udp-name-dropped-port", "ocpi-udp-rdma:4cam;" + testUUID + ".3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: Legacy, Host: "4cam", Addr: anyAddr(0), Size: 3145728, ID: 1, Max: 10, UUID: testUUID},
		"ocpi-udp-rdma:4cam;0;" + testUUID + ".3145728.1.10"},
	{"opencpi-protocol-udp", "ocpi-udp-rdma", Endpoint{Scheme: UDP, Dialect: OpenCPI}, ""},
	{"opencpi-protocol-ether-colon", "ocpi-ether-rdma:", Endpoint{Scheme: Ether, Dialect: OpenCPI}, "ocpi-ether-rdma"},
	{"legacy-udp", "ocpi-udp-rdma:192.168.1.5;40123;" + testUUID + ".3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: Legacy, Addr: addr("192.168.1.5:40123"), Size: 3145728, ID: 1, Max: 10, UUID: testUUID}, ""},
	{"legacy-udp-dropped-port", "ocpi-udp-rdma:192.168.1.5;" + testUUID + ".3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: Legacy, Addr: addr("192.168.1.5:0"), Size: 3145728, ID: 1, Max: 10, UUID: testUUID},
		"ocpi-udp-rdma:192.168.1.5;0;" + testUUID + ".3145728.1.10"},
	{"legacy-udp-dropped-port-no-uuid", "ocpi-udp-rdma:192.168.1.5;3145728.1.10",
		Endpoint{Scheme: UDP, Dialect: Spec, Addr: addr("192.168.1.5:0"), Size: 3145728, ID: 1, Max: 10},
		"ocpi-udp-rdma:192.168.1.5;0;3145728.1.10"},
	{"card-incomplete", "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa",
		Endpoint{Scheme: Ether, Dialect: Prefixed, Interface: "eth0", MAC: cardMAC}, ""},
	{"card-complete", "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".131072.1.10",
		Endpoint{Scheme: Ether, Dialect: Prefixed, Interface: "eth0", MAC: cardMAC, Size: 131072, ID: 1, Max: 10, UUID: testUUID}, ""},
	{"card-without-uuid", "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa;131072.1.10",
		Endpoint{Scheme: Ether, Dialect: Prefixed, Interface: "eth0", MAC: cardMAC, Size: 131072, ID: 1, Max: 10}, ""},
	{"card-bare-mac", "ocpi-ether-rdma:ether:80:1f:12:7c:d7:fa",
		Endpoint{Scheme: Ether, Dialect: Prefixed, MAC: cardMAC}, "ocpi-ether-rdma:Ether:80:1f:12:7c:d7:fa"},
	{"datagram2", "ocpi-ether-rdma:;" + testUUID + ".131072.1.10",
		Endpoint{Scheme: Ether, Dialect: Datagram2, Size: 131072, ID: 1, Max: 10, UUID: testUUID}, ""},
	{"datagram2-without-uuid", "ocpi-ether-rdma:;131072.1.10",
		Endpoint{Scheme: Ether, Dialect: Datagram2, Size: 131072, ID: 1, Max: 10}, ""},

	// What a person types.
	{"short-udp", "udp", Endpoint{Scheme: UDP, Dialect: Short}, ""},
	{"short-udp-port-0", "udp:0", Endpoint{Scheme: UDP, Dialect: Short}, "udp"},
	{"short-udp-port", "udp:7100", Endpoint{Scheme: UDP, Dialect: Short, Addr: anyAddr(7100)}, ""},
	{"short-udp-ip", "udp:1.2.3.4", Endpoint{Scheme: UDP, Dialect: Short, Addr: addr("1.2.3.4:0")}, "udp:1.2.3.4:0"},
	{"short-udp-ip-port", "udp:1.2.3.4:7100", Endpoint{Scheme: UDP, Dialect: Short, Addr: addr("1.2.3.4:7100")}, ""},
	{"short-udp-ipv6", "udp:[::]:7100", Endpoint{Scheme: UDP, Dialect: Short, Addr: addr("[::]:7100")}, ""},
	{"short-udp-mapped", "udp:[::ffff:1.2.3.4]:7100", Endpoint{Scheme: UDP, Dialect: Short, Addr: addr("1.2.3.4:7100")}, "udp:1.2.3.4:7100"},
	{"short-udp-name", "udp:camera", Endpoint{Scheme: UDP, Dialect: Short, Host: "camera"}, "udp:camera:0"},
	{"short-udp-name-port", "udp:Camera-2.local.:7100", Endpoint{Scheme: UDP, Dialect: Short, Host: "Camera-2.local.", Addr: anyAddr(7100)}, ""},
	{"short-udp-name-long", "udp:" + strings.Repeat("a.", 126) + "a:1", Endpoint{Scheme: UDP, Dialect: Short, Host: strings.Repeat("a.", 126) + "a", Addr: anyAddr(1)}, ""},
	{"short-ether", "ether:eth0", Endpoint{Scheme: Ether, Dialect: Short, Interface: "eth0"}, ""},
	{"short-ether-remote", "ether:eth0/00:0c:29:e2:30:24", Endpoint{Scheme: Ether, Dialect: Short, Interface: "eth0", MAC: hostMAC}, ""},
	{"short-ether-mac", "ether:00:0c:29:e2:30:24", Endpoint{Scheme: Ether, Dialect: Short, MAC: hostMAC}, ""},

	// Limits.
	{"limits-high", "ocpi-udp-rdma:255.255.255.255;65535;4294967296.65535.65535",
		Endpoint{Scheme: UDP, Addr: addr("255.255.255.255:65535"), Size: MaxSize, ID: 65535, Max: 65535}, ""},
	{"limits-low", "ocpi-udp-rdma:0.0.0.0;0;1.1.0",
		Endpoint{Scheme: UDP, Addr: addr("0.0.0.0:0"), Size: 1, ID: 1}, ""},
	{"limits-id-equals-max", "ocpi-udp-rdma:1.2.3.4;7000;16.10.10",
		Endpoint{Scheme: UDP, Addr: addr("1.2.3.4:7000"), Size: 16, ID: 10, Max: 10}, ""},
	{"limits-id-max-open", "ocpi-udp-rdma:1.2.3.4;7000;16.300.0",
		Endpoint{Scheme: UDP, Addr: addr("1.2.3.4:7000"), Size: 16, ID: 300}, ""},
	{"loopback-mac", "ocpi-ether-rdma:lo/00:00:00:00:00:00",
		Endpoint{Scheme: Ether, Interface: "lo", MAC: MACFrom6([6]byte{})}, ""},

	// Options.
	{"options-short", "udp:7100?profile=fpga&mtu=9000",
		Endpoint{Scheme: UDP, Dialect: Short, Addr: anyAddr(7100), Options: OptionsFrom(map[string]string{"mtu": "9000", "profile": "fpga"})},
		"udp:7100?mtu=9000&profile=fpga"},
	{"options-escaped", "ether:eth0?%6E%3d=%26%25%00%c3%A9=?",
		Endpoint{Scheme: Ether, Dialect: Short, Interface: "eth0", Options: OptionsFrom(map[string]string{"n=": "&%\x00é=?"})},
		"ether:eth0?n%3D=%26%25%00%C3%A9=?"},
	{"options-complete", "ocpi-ether-rdma:;" + testUUID + ".131072.1.10?window=",
		Endpoint{Scheme: Ether, Dialect: Datagram2, Size: 131072, ID: 1, Max: 10, UUID: testUUID, Options: OptionsFrom(map[string]string{"window": ""})}, ""},
}

func TestParse(t *testing.T) {
	for _, c := range accepted {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("Parse(%q)\n got %#v\nwant %#v", c.text, got, c.want)
			}
			canonical := c.canonical
			if canonical == "" {
				canonical = c.text
			}
			if text := got.String(); text != canonical {
				t.Errorf("String: got %q, want %q", text, canonical)
			}
			checkFixedPoint(t, got)
			if complete := got.ID != 0; got.Complete() != complete {
				t.Errorf("Complete: got %v, want %v", got.Complete(), complete)
			}
		})
	}
}

func checkFixedPoint(t *testing.T, e Endpoint) {
	t.Helper()
	text := e.String()
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse of String: %v", err)
	}
	if again != e {
		t.Fatalf("Parse(%q)\n got %#v\nwant %#v", text, again, e)
	}
	if again.String() != text {
		t.Fatalf("String is not stable: %q, then %q", text, again.String())
	}
}

func TestParseError(t *testing.T) {
	tests := []struct {
		name     string
		text     string
		offset   int
		expected string // a part of Error.Expected
		found    string // a part of the message
	}{
		{"empty", "", 0, "ocpi-ether-rdma", "end of string"},
		{"protocol", "ocpi-socket-rdma:1.2.3.4;7000", 0, "ocpi-udp-rdma", `"ocpi-socket-rdma:1.2.3.4"...`},
		{"protocol-case", "OCPI-udp-rdma:1.2.3.4;7000", 0, "ocpi-udp-rdma", ""},
		{"protocol-tcp", "tcp:1.2.3.4:7000", 0, "tcp is RDMA over TCP, of package verbs", ""},
		{"protocol-semicolon", "udp;7100", 0, "udp", ""},
		{"space-before", " udp", 0, "udp", ""},

		{"udp-name-of-numbers", "ocpi-udp-rdma:10.0.0.256:7000", 14, "an IPv4 address, an IPv6 address in brackets, or the name of a host", `"10.0.0.256:7000"`},
		{"udp-name-byte", "ocpi-udp-rdma:caméra:7000", 14, "the name of a host", ""},
		{"udp-name-space", "ocpi-udp-rdma:a b:7000", 14, "the name of a host", ""},
		{"udp-name-dash", "udp:-a:7000", 4, "the name of a host", ""},
		{"udp-name-dash-at-end", "udp:a-.b:7000", 4, "the name of a host", ""},
		{"udp-name-two-dots", "udp:a..b:7000", 4, "the name of a host", ""},
		{"udp-name-label", "udp:" + strings.Repeat("a", 64), 4, "the name of a host", ""},
		{"udp-name-long", "udp:" + strings.Repeat("a.", 126) + "ab", 4, "the name of a host", ""},
		{"udp-name-two-ports", "udp:camera:7100:1", 4, "an IPv6 address in brackets", ""},
		{"udp-ipv6-without-brackets", "ocpi-udp-rdma:fe80::1:7000", 14, "in brackets", ""},
		{"udp-ipv6-unclosed", "ocpi-udp-rdma:[fe80::1", 22, "']'", "end of string"},
		{"udp-ipv4-in-brackets", "ocpi-udp-rdma:[1.2.3.4]:7000", 15, "an IPv6 address", ""},
		{"udp-ipv6-zone-space", "ocpi-udp-rdma:[fe80::1%a b]:7000", 24, "an interface name", `" b]:7000"`},
		{"udp-after-bracket", "ocpi-udp-rdma:[fe80::1]7000", 23, "';'", `"7000"`},
		{"udp-no-address", "ocpi-udp-rdma:;" + testUUID + ".1.1.0", 14, "an IPv4 address", ""},
		{"udp-no-port", "ocpi-udp-rdma:1.2.3.4:", 22, "a UDP port", "end of string"},
		{"udp-no-port-spec", "ocpi-udp-rdma:1.2.3.4;", 22, "or the suffix", "end of string"},
		{"udp-port-range", "ocpi-udp-rdma:1.2.3.4;65536", 22, "a UDP port from 0 to 65535", `"65536"`},
		{"udp-port-sign", "ocpi-udp-rdma:1.2.3.4:+7", 22, "a UDP port", ""},
		{"udp-port-zeros", "ocpi-udp-rdma:1.2.3.4:0700", 22, "without leading zeros", ""},
		{"udp-port-garbage", "ocpi-udp-rdma:1.2.3.4:7000x", 26, "';' and the suffix", `"x"`},
		// A string that ends in ';' is not usable (opencpi-peers.md section 9).
		{"trailing-semicolon", "ocpi-udp-rdma:1.2.3.4;7000;", 27, "a size from 1 to 4294967296 bytes, or a uuid", "end of string"},

		{"ether-no-slash", "ocpi-ether-rdma:eth0", 20, "'/' and a MAC address", "end of string"},
		{"ether-no-slash-suffix", "ocpi-ether-rdma:eth0;1.1.0", 20, "'/' and a MAC address", `";1.1.0"`},
		{"ether-no-interface", "ocpi-ether-rdma:/00:0c:29:e2:30:24", 16, "an interface name", ""},
		{"ether-interface-colon", "ocpi-ether-rdma:eth0:1/00:0c:29:e2:30:24", 20, "an interface name without", ""},
		{"ether-prefix-twice", "ocpi-ether-rdma:Ether:Ether:eth0/00:0c:29:e2:30:24", 27, "an interface name without", ""},
		{"ether-prefix-alone", "ocpi-ether-rdma:Ether:", 22, "an interface name", "end of string"},
		{"ether-mac-digit", "ocpi-ether-rdma:eth0/00:0c:2g:e2:30:24", 28, "two hexadecimal digits", `"g:e2:30:24"`},
		{"ether-mac-short-field", "ocpi-ether-rdma:eth0/0:c:29:e2:30:24", 22, "two hexadecimal digits", ""},
		{"ether-mac-dash", "ocpi-ether-rdma:eth0/00-0c-29-e2-30-24", 23, "':'", ""},
		{"ether-mac-ip", "ocpi-ether-rdma:eth0/10.0.0.1", 23, "':'", ""},
		{"ether-mac-end", "ocpi-ether-rdma:eth0/00:0c:29:e2:30", 35, "':'", "end of string"},
		{"ether-mac-long", "ocpi-ether-rdma:eth0/00:0c:29:e2:30:24:01", 38, "';'", ""},
		{"bare-mac-digit", "ocpi-ether-rdma:00:0c:29:e2:30:2x", 32, "two hexadecimal digits", ""},
		{"appendix-no-mac", "ocpi-ether-l2-rdma", 18, "':' and a MAC address", ""},
		{"appendix-interface", "ocpi-ether-l2-rdma:eth0/00:0c:29:e2:30:24", 20, "two hexadecimal digits", ""},
		{"appendix-semicolon", "ocpi-ether-l2-rdma:00:0c:29:e2:30:24;1.1.0", 36, "':' and the suffix", ""},
		{"appendix-uuid", "ocpi-ether-l2-rdma:00:0c:29:e2:30:24:" + testUUID + ".1.1.0", 38, "'.' and an endpoint id", ""},

		{"suffix-size-0", "ocpi-udp-rdma:1.2.3.4;7000;0.1.10", 27, "a size from 1", `"0.1.10"`},
		{"suffix-size-range", "ocpi-udp-rdma:1.2.3.4;7000;4294967297.1.10", 27, "4294967296", ""},
		{"suffix-size-overflow", "ocpi-udp-rdma:1.2.3.4;7000;99999999999999999999.1.10", 27, "4294967296", ""},
		{"suffix-size-hex", "ocpi-udp-rdma:1.2.3.4;7000;0x10.1.10", 27, "a size from 1", ""},
		{"suffix-size-unit", "ocpi-udp-rdma:1.2.3.4;7000;16k.1.10", 29, "'.'", `"k.1.10"`},
		{"suffix-size-only", "ocpi-udp-rdma:1.2.3.4;7000;16", 29, "'.' and an endpoint id", "end of string"},
		{"suffix-id-0", "ocpi-udp-rdma:1.2.3.4;7000;16.0.10", 30, "an endpoint id from 1 to 65535", ""},
		{"suffix-id-range", "ocpi-udp-rdma:1.2.3.4;7000;16.65536.0", 30, "an endpoint id from 1 to 65535", ""},
		{"suffix-id-above-max", "ocpi-udp-rdma:1.2.3.4;7000;16.11.10", 30, "not above", `"11.10"`},
		{"suffix-no-max", "ocpi-udp-rdma:1.2.3.4;7000;16.1", 31, "'.' and the number of endpoint ids", ""},
		{"suffix-max-range", "ocpi-udp-rdma:1.2.3.4;7000;16.1.65536", 32, "from 0 to 65535", ""},
		{"suffix-garbage", "ocpi-udp-rdma:1.2.3.4;7000;16.1.10.1", 34, "the end of the suffix", ""},
		{"suffix-newline", "ocpi-udp-rdma:1.2.3.4;7000;16.1.10\n", 34, "the end of the suffix", `"\n"`},
		{"uuid-short", "ocpi-udp-rdma:1.2.3.4:7000;6f9619ff-8b86-d011-b42d-00c04fc964f.16.1.10", 62, "8-4-4-4-12", ""},
		{"uuid-long", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + "0.16.1.10", 63, "'.' and a size", ""},
		{"uuid-digit", "ocpi-udp-rdma:1.2.3.4:7000;6x9619ff-8b86-d011-b42d-00c04fc964ff.16.1.10", 28, "8-4-4-4-12", ""},
		{"uuid-only", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID, 63, "'.' and a size", ""},

		{"short-udp-empty", "udp:", 4, "a UDP port from 0 to 65535, an IP address", ""},
		{"short-udp-sign", "udp:+7", 4, "a UDP port from 0 to 65535, an IP address, or the name of a host", ""},
		{"short-udp-only-colon", "udp::7100", 4, "an IPv4 address", ""},
		{"short-udp-suffix", "udp:7100;16.1.10", 4, "an IPv4 address", ""},
		{"short-udp-ip-suffix", "udp:1.2.3.4:7100;16.1.10", 16, "the end of the short form", ""},
		{"short-ether-alone", "ether", 5, "':' and an interface name", ""},
		{"short-ether-empty", "ether:", 6, "an interface name", ""},
		{"short-ether-suffix", "ether:eth0;16.1.10", 10, "the end of the short form", ""},

		{"options-none", "udp:7100?", 9, "an option key=value", "end of string"},
		{"options-no-value", "udp:7100?mtu", 12, "'='", "end of string"},
		{"options-no-key", "udp:7100?=9000", 9, "an option key=value", ""},
		{"options-trailing", "udp:7100?mtu=9000&", 18, "an option key=value", ""},
		{"options-twice", "udp:7100?mtu=9000&gso=off&mt%75=1", 26, "each option once", `"mt%75=1"`},
		{"options-escape", "udp:7100?mtu=90%0", 15, "two hexadecimal digits", `"%0"`},
		{"options-escape-digit", "udp:7100?m%zz=1", 10, "two hexadecimal digits", ""},
		{"options-space", "udp:7100?name=a b", 15, "a printable ASCII character", `" b"`},
		{"options-utf8", "udp:7100?name=é", 14, "a printable ASCII character", ""},

		{"too-long", strings.Repeat("x", MaxLength+1), MaxLength, "at most 4096 bytes", `"x"`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.text)
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Fatalf("got %#v, %v, want an *Error", got, err)
			}
			if got != (Endpoint{}) {
				t.Errorf("got %#v with an error", got)
			}
			if wrong.Input != c.text {
				t.Errorf("Input: got %q", wrong.Input)
			}
			if wrong.Offset != c.offset || !strings.Contains(wrong.Expected, c.expected) {
				t.Errorf("got offset %d, expected %q\nwant offset %d, expected %q", wrong.Offset, wrong.Expected, c.offset, c.expected)
			}
			message := err.Error()
			if !strings.HasPrefix(message, "dgrdma: endpoint string ") || !strings.HasSuffix(message, c.found) {
				t.Errorf("message %s\nwant it to end in %s", message, c.found)
			}
			if len(message) > 600 {
				t.Errorf("message has %d bytes", len(message))
			}
		})
	}
}

func TestErrorMessage(t *testing.T) {
	_, err := Parse("ocpi-udp-rdma:1.2.3.4;7000;16.0.10")
	const want = `dgrdma: endpoint string "ocpi-udp-rdma:1.2.3.4;7000;16.0.10": byte 30: expected an endpoint id from 1 to 65535, found "0.10"`
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// TestParseLengthOfCanonicalForm: a canonical string may be longer than what was read, and
// still has to parse.
func TestParseLengthOfCanonicalForm(t *testing.T) {
	const head = "udp:1.2.3.4?k="
	if _, err := Parse(head + strings.Repeat("v", MaxLength-len(head)-len(":0"))); err != nil {
		t.Error(err)
	}
	if _, err := Parse(head + strings.Repeat("v", MaxLength-len(head))); err == nil {
		t.Error("accepted a string without a canonical form")
	}
}

func TestMAC(t *testing.T) {
	octets := [6]byte{0x02, 0, 0x5e, 0x10, 0xab, 0xff}
	m := MACFrom6(octets)
	if !m.IsValid() || m.As6() != octets || m.String() != "02:00:5e:10:ab:ff" {
		t.Errorf("got %v, %v, %q", m.IsValid(), m.As6(), m)
	}
	if none := (MAC{}); none.IsValid() || none == MACFrom6([6]byte{}) || none.String() != "" {
		t.Error("zero MAC is an address")
	}
}

func TestReachable(t *testing.T) {
	for text, want := range map[string]bool{
		"ocpi-ether-rdma:eth0/00:0c:29:e2:30:24;131072.2.10": true,
		"ocpi-ether-rdma:;131072.2.10":                       false,
		"ether:eth0":                                         false,
		"udp:1.2.3.4:7000":                                   true,
		"udp:1.2.3.4":                                        false,
		"udp:0.0.0.0:7000":                                   false,
		"udp:7000":                                           false,
		"udp:camera:7000":                                    true,
		"udp:camera":                                         false,
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if e.Reachable() != want {
			t.Errorf("%s: got %v, want %v", text, e.Reachable(), want)
		}
	}
	if (Endpoint{}).Reachable() {
		t.Error("zero endpoint is reachable")
	}
}

func TestMarshalText(t *testing.T) {
	type config struct{ Local, Peer, Unset Endpoint }
	local, _ := Parse("udp:7100?mtu=9000")
	peer, _ := Parse("ocpi-udp-rdma:1.2.3.4;7000;16.1.10")
	before := config{Local: local, Peer: peer}
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Local":"udp:7100?mtu=9000","Peer":"ocpi-udp-rdma:1.2.3.4;7000;16.1.10","Unset":""}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var after config
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("got %#v", after)
	}
	if err := new(Endpoint).UnmarshalText([]byte("udp:-")); err == nil {
		t.Error("unmarshalled udp:-")
	}
	for name, e := range map[string]Endpoint{
		"bad-interface": {Scheme: Ether, Dialect: Short, Interface: "a/b"},
		"uuid-in-spec":  {Scheme: UDP, Addr: addr("1.2.3.4:7000"), Size: 16, ID: 1, UUID: testUUID},
		"no-scheme":     {Size: 16},
	} {
		if text, err := e.MarshalText(); err == nil {
			t.Errorf("%s: got %q", name, text)
		}
	}
}

func TestOptions(t *testing.T) {
	var none Options
	if none.Len() != 0 || none.String() != "" {
		t.Errorf("zero value: %d options, %q", none.Len(), none)
	}
	if _, ok := none.Get(""); ok {
		t.Error("zero value has an option with an empty key")
	}
	o := none.With("window", "32").With("gso", "off").With("window", "1024").With("empty", "")
	if got, want := o.String(), "empty=&gso=off&window=1024"; got != want || o.Len() != 3 {
		t.Errorf("got %q with %d options, want %q", got, o.Len(), want)
	}
	if v, ok := o.Get("window"); v != "1024" || !ok {
		t.Errorf("window: got %q, %v", v, ok)
	}
	if v, ok := o.Get("empty"); v != "" || !ok {
		t.Errorf("empty: got %q, %v", v, ok)
	}
	if _, ok := o.Get("mtu"); ok {
		t.Error("mtu is there")
	}
	if o.Without("empty").Without("gso").Without("window").Without("mtu") != none {
		t.Error("Without leaves something")
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	m := map[string]string{string(all): string(all), "&=%?": "&=%?"}
	if got := maps.Collect(OptionsFrom(m).All()); !maps.Equal(got, m) {
		t.Errorf("got %q", got)
	}
	checkFixedPoint(t, Endpoint{Scheme: UDP, Dialect: Short, Options: OptionsFrom(m)})
	defer func() {
		if recover() == nil {
			t.Error("With an empty key did not panic")
		}
	}()
	none.With("", "x")
}
