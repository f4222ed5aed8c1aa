package dgrdma

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/url"
)

// CheckOption returns what an option of an endpoint string stands for, in a few words, and
// why [Open] would refuse it.
func CheckOption(key, value string) (meaning string, err error) {
	var o openConfig
	err = o.set(key, value)
	if s := settings.OfOption(key); s != nil {
		meaning = s.Help()
	}
	return meaning, err
}

// set does what an option says.
func (o *openConfig) set(key, value string) error {
	s := settings.OfOption(key)
	if s == nil {
		return fmt.Errorf("dgrdma: endpoint string has the option %q; there are %s", key, strings.Join(optionNames(), ", "))
	}
	v, err := s.Parse(value)
	if err != nil {
		return fmt.Errorf("dgrdma: endpoint string says %s=%s: %w", key, value, err)
	}
	switch s {
	case settings.Profile:
		p, err := ProfileByName(v.Word, o.url.Scheme == url.UDP)
		o.cfg.Profile = &p
		return err
	case settings.KeyFile:
		o.cfg.Keys, err = seal.ReadKeys(v.Word)
		return err
	case settings.Accept:
		o.cfg.AcceptAny = v.Word == "any"
	case settings.Congestion:
		o.cfg.Congestion = Congestion(v.Word)
	case settings.Help:
		o.cfg.NoHelp = !v.On()
	case settings.SockBuf:
		o.sockbuf = int(v.Number) // 0, as much as is allowed, for max
		if v.Word == "default" {
			o.sockbuf = -1
		}
	case settings.MTU:
		o.mtu = int(v.Number)
	case settings.GSO:
		o.gso = v.On()
	case settings.GRO:
		o.gro = v.On()
	case settings.EtherType:
		o.etherType = int(v.Number)
	case settings.Ring:
		o.noRing, o.needRing = !v.On(), v.On()
	case settings.XDP:
		o.noXDP, o.needXDP = v.Word == settings.Off, v.On()
	case settings.Max:
		o.max = int(v.Number)
	default:
		o.configure(s, v)
	}
	return nil
}

// configure sets the field of the configuration that a setting is about.
func (o *openConfig) configure(s *settings.Setting, v settings.Value) {
	f := reflect.ValueOf(&o.cfg).Elem().FieldByName(s.Field)
	if s.Kind == settings.Choice {
		f.SetBool(v.On())
		return
	}
	f.SetInt(v.Number)
}

// suits refuses an option that means nothing on the wire that the string names.
func (o *openConfig) suits(key, value string) error {
	wire := settings.OverUDP
	if o.url.Scheme == url.Ether {
		wire = settings.OverEther
	}
	if s := settings.OfOption(key); s != nil && s.Wire != "" && s.Wire != wire {
		return fmt.Errorf("dgrdma: endpoint string says %s=%s, which means something over %s and nothing over %s: leave it out", key, value, s.Wire, wire)
	}
	return nil
}

// agree does what an option says, which must be what the configuration says, if that says
// something.
func (o *openConfig) agree(key, value string) error {
	field := ""
	if s := settings.OfOption(key); s != nil && s != settings.Profile { // which a program may give for users that give none
		field = s.Field
	}
	config := reflect.ValueOf(&o.cfg).Elem()
	if field == "" || config.FieldByName(field).IsZero() {
		return o.set(key, value)
	}
	before := config.FieldByName(field).Interface()
	if err := o.set(key, value); err != nil {
		return err
	}
	if now := config.FieldByName(field).Interface(); now != before {
		return fmt.Errorf("dgrdma: the endpoint string says %s=%s, and the configuration's %s is %v: say it once", key, value, field, before)
	}
	return nil
}

func optionNames() (names []string) {
	for _, s := range settings.All {
		if s.Option != "" {
			names = append(names, s.Option)
		}
	}
	slices.Sort(names)
	return names
}
