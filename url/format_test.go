package url

import (
	"errors"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	tests := []struct {
		name    string
		text    string
		dialect Dialect
		want    string // "" for an error
		reason  string // a part of FormatError.Reason
	}{
		{"udp-to-spec", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.1.10", Spec, "ocpi-udp-rdma:1.2.3.4;7000;16.1.10", ""},
		{"udp-to-opencpi", "ocpi-udp-rdma:1.2.3.4;7000;" + testUUID + ".16.1.10", OpenCPI, "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.1.10", ""},
		{"udp-to-legacy", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.1.10", Legacy, "ocpi-udp-rdma:1.2.3.4;7000;" + testUUID + ".16.1.10", ""},
		{"udp-incomplete-to-opencpi", "udp:1.2.3.4:7000", OpenCPI, "ocpi-udp-rdma:1.2.3.4:7000", ""},
		{"udp-ipv6-to-spec", "udp:[fe80::1%eth0]:7000", Spec, "ocpi-udp-rdma:[fe80::1%eth0];7000", ""},
		{"udp-to-short", "ocpi-udp-rdma:1.2.3.4;7000;16.1.10?mtu=9000", Short, "udp:1.2.3.4:7000?mtu=9000", ""},
		{"options-left-out", "ocpi-udp-rdma:1.2.3.4;7000;16.1.10?mtu=9000", Spec, "ocpi-udp-rdma:1.2.3.4;7000;16.1.10", ""},
		{"ether-to-spec", "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", Spec, "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;16.1.10", ""},
		{"ether-to-opencpi", "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", OpenCPI, "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", ""},
		{"ether-to-prefixed", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", Prefixed, "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", ""},
		{"ether-incomplete-to-prefixed", "ether:eth0/80:1f:12:7c:d7:fa", Prefixed, "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa", ""},
		{"ether-to-datagram2", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", Datagram2, "ocpi-ether-rdma:;" + testUUID + ".16.1.10", ""},
		{"ether-to-appendix", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", Appendix, "ocpi-ether-l2-rdma:80:1f:12:7c:d7:fa:16.1.10", ""},
		{"ether-to-short", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;16.1.10", Short, "ether:eth0/80:1f:12:7c:d7:fa", ""},

		// Readers of these dialects take ids below 10, and strings with the number of their own ids.
		{"all-ids-to-opencpi", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.65535", OpenCPI, "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.10", ""},
		{"all-ids-to-legacy", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.9.65535", Legacy, "ocpi-udp-rdma:1.2.3.4;7000;" + testUUID + ".16.9.10", ""},
		{"all-ids-to-prefixed", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.65535", Prefixed, "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa;" + testUUID + ".16.1.10", ""},
		{"all-ids-to-spec", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.65535", Spec, "ocpi-udp-rdma:1.2.3.4;7000;16.3.65535", ""},
		{"chosen-ids-to-opencpi", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.16", OpenCPI, "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.16", ""},
		{"open-ids-to-opencpi", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.0", OpenCPI, "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.3.0", ""},
		{"id-10-opencpi", "ocpi-udp-rdma:1.2.3.4:7000;" + testUUID + ".16.10.65535", OpenCPI, "", "has id 10, and OpenCPI takes 1 to 9"},
		{"id-200-datagram2", "ocpi-ether-rdma:;" + testUUID + ".16.200.0", Datagram2, "", "has id 200, and OpenCPI takes 1 to 9"},
		{"id-200-appendix", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;16.200.0", Appendix, "ocpi-ether-l2-rdma:80:1f:12:7c:d7:fa:16.200.0", ""},

		// They refuse a suffix without uuid (quirk U2).
		{"no-uuid-opencpi", "ocpi-udp-rdma:1.2.3.4;7000;16.1.10", OpenCPI, "", "no uuid"},
		{"no-uuid-legacy", "ocpi-udp-rdma:1.2.3.4;7000;16.1.10", Legacy, "", "no uuid"},
		{"no-uuid-prefixed", "ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;16.1.10", Prefixed, "", "no uuid"},
		{"no-uuid-datagram2", "ocpi-ether-rdma:;16.1.10", Datagram2, "", "no uuid"},
		{"incomplete-datagram2", "ether:eth0", Datagram2, "", "no size"},
		{"ipv6-opencpi", "udp:[fe80::1%eth0]:7000", OpenCPI, "", "IPv4"},
		{"name-to-spec", "udp:camera:7000", Spec, "ocpi-udp-rdma:camera;7000", ""},
		{"name-to-short", "ocpi-udp-rdma:camera;7000;16.1.10", Short, "udp:camera:7000", ""},
		{"name-opencpi", "udp:camera:7000", OpenCPI, "", "no names"},
		{"udp-prefixed", "udp:1.2.3.4:7000", Prefixed, "", "Ethernet"},
		{"udp-appendix", "udp:1.2.3.4:7000", Appendix, "", "Ethernet"},
		{"any-address-spec", "udp:7000", Spec, "", "no IP address"},
		{"no-mac-spec", "ether:eth0", Spec, "", "no MAC address"},
		{"no-mac-appendix", "ether:eth0", Appendix, "", "no MAC address"},
		{"no-interface-opencpi", "ether:80:1f:12:7c:d7:fa", OpenCPI, "", "no interface"},
		{"no-station-short", "ocpi-ether-rdma", Short, "", "an interface name"},
		{"no-such-dialect", "udp:1.2.3.4:7000", Short + 1, "", "no such dialect"},
		{"opencpi-length", "ether:" + strings.Repeat("e", 240) + "/80:1f:12:7c:d7:fa", OpenCPI, "", "more than the 255"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			e, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Format(c.dialect)
			checkFormatted(t, got, err, c.want, c.reason)
			if err != nil {
				return
			}
			again, err := Parse(got)
			if err != nil {
				t.Fatal(err)
			}
			checkFixedPoint(t, again)
		})
	}
}

func TestFormatRefusesBadFields(t *testing.T) {
	good := Endpoint{Scheme: Ether, Interface: "eth0", MAC: cardMAC, Size: 16, ID: 1, Max: 10}
	if text, err := good.Format(Spec); err != nil {
		t.Fatal(text, err)
	}
	for _, c := range []struct {
		name   string
		change func(*Endpoint)
		reason string
	}{
		{"scheme", func(e *Endpoint) { e.Scheme = 0 }, "no scheme"},
		{"interface", func(e *Endpoint) { e.Interface = "eth0:1" }, "an interface name without"},
		{"interface-suffix", func(e *Endpoint) { e.Interface = "eth0;1" }, "'/' and a MAC address"},
		{"interface-prefix", func(e *Endpoint) { e.Interface = "Ether:eth0" }, "another endpoint"},
		{"size", func(e *Endpoint) { e.Size = MaxSize + 1 }, "a size from 1"},
		{"no-size", func(e *Endpoint) { e.Size = 0 }, "size 0 and id 1"},
		{"no-id", func(e *Endpoint) { e.ID = 0 }, "size 16 and id 0"},
		{"id", func(e *Endpoint) { e.ID = 11 }, "not above"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := good
			c.change(&e)
			got, err := e.Format(Spec)
			checkFormatted(t, got, err, "", c.reason)
		})
	}
	for uuid, reason := range map[string]string{
		"not-a-uuid":           "8-4-4-4-12",
		testUUID + ".32.2.10?": "'=' and the value",
		"32.1.10?a=":           "another endpoint",
	} {
		e := good
		e.UUID = uuid
		got, err := e.Format(OpenCPI)
		checkFormatted(t, got, err, "", reason)
	}
}

func checkFormatted(t *testing.T, got string, err error, want, reason string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if want != "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var misfit *FormatError
	if !errors.As(err, &misfit) {
		t.Fatalf("got %v, want a *FormatError", err)
	}
	if !strings.Contains(misfit.Reason, reason) || !strings.HasPrefix(err.Error(), "dgrdma: format endpoint string as ") {
		t.Errorf("got %v, want %q in it", err, reason)
	}
}

// TestStringOfPartialEndpoints: String does not fail, whatever is in the fields.
func TestStringOfPartialEndpoints(t *testing.T) {
	for _, scheme := range []Scheme{0, Ether, UDP, 9} {
		for dialect := range Short + 2 {
			for _, e := range []Endpoint{
				{},
				{Size: 16},
				{Size: 16, ID: 1, UUID: testUUID},
				{Interface: "eth0", Addr: addr("[::ffff:1.2.3.4]:7000")},
			} {
				e.Scheme, e.Dialect = scheme, dialect
				text := e.String()
				if known := scheme == Ether || scheme == UDP; known == (text == "") {
					t.Errorf("%v %v: got %q", scheme, dialect, text)
				}
			}
		}
	}
}
