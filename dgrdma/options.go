package dgrdma

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/url"
)

// CheckOption returns what an option of an endpoint string on that wire stands
// for, in a few words, and why [Open] would refuse it.
func CheckOption(wire url.Scheme, key, value string) (meaning string, err error) {
	o := opening{url: url.Endpoint{Scheme: wire}}
	err = o.set(key, value)
	return options[key].meaning, err
}

// option is something that can be said behind the '?' of an endpoint string.
type option struct {
	meaning string // as in the documentation of Open
	set     func(o *opening, value string) error
}

func (o *opening) set(key, value string) error {
	option, ok := options[key]
	if !ok {
		known := slices.Sorted(maps.Keys(options))
		return fmt.Errorf("dgrdma: endpoint string has the option %q; there are %s", key, strings.Join(known, ", "))
	}
	if err := option.set(o, value); err != nil {
		return fmt.Errorf("dgrdma: endpoint string says %s=%s: %w", key, value, err)
	}
	return nil
}

var options = map[string]option{
	"profile": {"kind of peers: native, fpga, opencpi, opencpi2, opencpi-legacy", func(o *opening, v string) error {
		p, err := ProfileByName(v, o.url.Scheme == url.UDP)
		o.cfg.Profile = &p
		return err
	}},
	"mtu": {"largest IP packet, or Ethernet payload, instead of the interface's", func(o *opening, v string) error {
		return number(&o.mtu, v, 1, 65535)
	}},
	"window":   {"frames waiting for acknowledgement", func(o *opening, v string) error { return number(&o.cfg.Window, v, 1, 16383) }},
	"queue":    {"transactions a connection holds", func(o *opening, v string) error { return number(&o.cfg.Queue, v, 1, 1<<20) }},
	"giveup":   {"without progress for so long, a peer is down (default 10s)", func(o *opening, v string) error { return duration(&o.cfg.GiveUp, v) }},
	"coalesce": {"a small transaction waits so long for company (default 0s)", func(o *opening, v string) error { return duration(&o.cfg.Coalesce, v) }},
	"accept": {"learn peers from what they send", func(o *opening, v string) error {
		o.cfg.AcceptAny = v == "any"
		return oneOf(v, "any", "connected")
	}},
	"busypoll": {"receive without sleeping", func(o *opening, v string) error { return onOff(&o.cfg.BusyPoll, v) }},
	"help": {"who waits for a link receives and sends meanwhile (default with one or two processors)", func(o *opening, v string) error {
		var on bool
		err := onOff(&on, v)
		o.cfg.Help = HelpNever
		if on {
			o.cfg.Help = HelpAlways
		}
		return err
	}},
	"sockbuf": {"size of the socket's buffers; default leaves the kernel's, max is what is allowed", func(o *opening, v string) error {
		switch v {
		case "default":
			o.sockbuf = -1
			return nil
		case "max":
			o.sockbuf = 0
			return nil
		}
		return number(&o.sockbuf, v, 4096, 1<<30)
	}},
	"gso": {"UDP segmentation offload, for sending", func(o *opening, v string) error { return onOff(&o.gso, v) }},
	"gro": {"UDP segmentation offload, for receiving", func(o *opening, v string) error { return onOff(&o.gro, v) }},
	"ethertype": {"type of the Ethernet frames (default 0xF042)", func(o *opening, v string) error {
		n, err := strconv.ParseUint(v, 0, 16)
		if err != nil || n < 0x0600 {
			return fmt.Errorf("need a number from 0x0600 to 0xffff")
		}
		o.etherType = int(n)
		return nil
	}},
	"ring": {"receive Ethernet frames through shared memory (default off)", func(o *opening, v string) error { return onOff(&o.ring, v) }},
	"max": {"number of endpoint ids, for the string that peers are told (default 65535)", func(o *opening, v string) error {
		return number(&o.max, v, 1, 65535)
	}},
}

func number(dst *int, v string, least, most int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return fmt.Errorf("need a number from %d to %d", least, most)
	}
	*dst = n
	return nil
}

func duration(dst *time.Duration, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return fmt.Errorf("need a duration such as 10s or 500us")
	}
	*dst = d
	return nil
}

func oneOf(v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return fmt.Errorf("need %s", strings.Join(allowed, " or "))
	}
	return nil
}

func onOff(dst *bool, v string) error {
	*dst = v == "on"
	return oneOf(v, "on", "off")
}
