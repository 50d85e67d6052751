package namespace

import (
	"lockfs/raftstore/digest"
	"lockfs/raftstore/storepb"
)

// Records of tables with messages or numbers as values, for the digest.
type (
	memberRecord struct{ *storepb.Member }
	ruleRecord   struct{ *storepb.Rule }
	eventRecord  struct{ *storepb.Event }
	alarmRecord  struct{ *storepb.Alarm }
	quotaRecord  struct{ *storepb.Quota }
	eventCount   struct {
		event string
		count uint64
	}
)

func memberValue(_ string, m *storepb.Member) digest.Value { return memberRecord{m} }
func ruleValue(_ string, m *storepb.Rule) digest.Value     { return ruleRecord{m} }
func eventValue(_ uint64, m *storepb.Event) digest.Value   { return eventRecord{m} }
func alarmValue(_ uint64, m *storepb.Alarm) digest.Value   { return alarmRecord{m} }
func countValue(event string, count uint64) digest.Value   { return eventCount{event, count} }

// Record implements digest.Value.
func (m memberRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Member{Member: m.Member}}
}

// Record implements digest.Value.
func (m ruleRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Rule{Rule: m.Rule}}
}

// Record implements digest.Value.
func (m eventRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Event{Event: m.Event}}
}

// Record implements digest.Value.
func (m alarmRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Alarm{Alarm: m.Alarm}}
}

// Record implements digest.Value.
func (m quotaRecord) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_Quota{Quota: m.Quota}}
}

// Record implements digest.Value.
func (c eventCount) Record() *storepb.Record {
	return &storepb.Record{Record: &storepb.Record_EventCount{EventCount: &storepb.EventCount{Event: c.event, Count: c.count}}}
}
