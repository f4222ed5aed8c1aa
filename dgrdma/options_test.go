package dgrdma

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// TestOptionsAreAccepted checks that every value is accepted that the table offers, and none
// outside its bounds.
func TestOptionsAreAccepted(t *testing.T) {
	accepted := func(s *settings.Setting, value string) bool {
		_, err := CheckOption(s.Option, value)
		return err == nil
	}
	options := 0
	for _, s := range settings.All {
		if s.Option == "" {
			continue
		}
		options++
		values := s.Words
		switch s.Kind {
		case settings.Time:
			values = []string{time.Duration(s.Least).String(), "1500us", "10s"}
		case settings.Number:
			values = append(values, fmt.Sprint(s.Least), fmt.Sprint(max(s.Most, s.Least)))
		case settings.Hex:
			values = append(values, fmt.Sprint(s.Least), fmt.Sprintf("%#x", s.Most))
		}
		if s.Default != 0 {
			values = append(values, s.Otherwise())
		}
		if s.Kind == settings.Choice {
			values = append(values, s.Value)
			if s.Value == "NAME" {
				values = s.Words
			}
		}
		for _, v := range values {
			if !accepted(s, v) {
				t.Errorf("%s=%s is refused", s.Option, v)
			}
		}
		refused := []string{"", "maybe", "-1", fmt.Sprint(s.Least - 1)}
		if s.Most != 0 {
			refused = append(refused, fmt.Sprint(s.Most+1))
		}
		for _, v := range refused {
			if accepted(s, v) {
				t.Errorf("%s=%s is accepted", s.Option, v)
			}
		}
	}
	if options < 15 {
		t.Errorf("there are %d options only", options)
	}
}

// TestCheckOption checks that CheckOption returns what an option means, and an error for a value or
// an option that there is not.
func TestCheckOption(t *testing.T) {
	for _, c := range []struct{ key, value, meaning, wrong string }{
		{"giveup", "2s", "without progress for so long, a peer is down, 1ms or more (default 10s)", ""},
		{"giveup", "2", "without progress for so long, a peer is down, 1ms or more (default 10s)", "says giveup=2: need a time of 1ms or more, such as 10s"},
		{"profile", "fpgas", "kind of peers: native, fpga, opencpi, opencpi2 or opencpi-legacy (default native)", "need native, fpga"},
		{"speed", "high", "", `has the option "speed"; there are accept, busypoll`},
	} {
		meaning, err := CheckOption(c.key, c.value)
		if meaning != c.meaning || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s=%s: %q, %v", c.key, c.value, meaning, err)
		}
	}
}

// TestProfilesAreThoseOfTheTable checks that each name of a profile in the table is that of a
// profile.
func TestProfilesAreThoseOfTheTable(t *testing.T) {
	for _, name := range settings.Profile.Words {
		for _, overUDP := range []bool{false, true} {
			if p, err := ProfileByName(name, overUDP); err != nil || p.Name != name {
				t.Errorf("%s: %q, %v", name, p.Name, err)
			}
		}
	}
}

// TestEtherTypeIsOne checks that the EtherType of the options is that of the transport, which has
// its own, as it knows no frames.
func TestEtherTypeIsOne(t *testing.T) {
	if ether.EtherType != frame.EtherType {
		t.Errorf("%#x and %#x", ether.EtherType, frame.EtherType)
	}
}

// TestStringAndConfigurationAgree checks that the string and the configuration must say the same
// where both say something.
func TestStringAndConfigurationAgree(t *testing.T) {
	for _, c := range []struct {
		options string
		cfg     Config
		fits    bool
	}{
		{"window=7", Config{Window: 7}, true},
		{"window=7", Config{Window: 8}, false},
		{"giveup=3s", Config{GiveUp: 3 * time.Second}, true},
		{"giveup=3s", Config{GiveUp: time.Second}, false},
		{"keepalive=3s", Config{KeepAlive: 3 * time.Second}, true},
		{"queue=5", Config{Queue: 9}, false},
		{"coalesce=1ms", Config{Coalesce: time.Second}, false},
		{"accept=any", Config{AcceptAny: true}, true},
		{"accept=any", Config{}, true},
		{"accept=connected", Config{AcceptAny: true}, false},
		{"busypoll=off", Config{BusyPoll: true}, false},
		{"help=on", Config{NoHelp: true}, false},
		{"help=off", Config{NoHelp: true}, true},
		{"sockbuf=max", Config{Window: 8}, true},
	} {
		e, err := Open("udp:127.0.0.1?"+c.options, &c.cfg)
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "say it once") {
			t.Errorf("%s, %+v: %v", c.options, c.cfg, err)
		}
		if err == nil {
			e.Close()
		}
	}
}
