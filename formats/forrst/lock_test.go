package forrst_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/test/fuzzing"
)

const lockFile = `{"urn":"urn:forrst:ext:atomicLock","key":"lock:payments.charge:user:123",` +
	`"owner":"` + owner + `","acquired_at":"2024-03-15T10:30:00Z","expires_at":"2024-03-15T10:30:30Z"}`

func TestForrstLockFileRoundTrips(t *testing.T) {
	o := options(t, charge)
	o.Owner = owner
	lock, err := forrst.NewLock(o, "payments.charge", now)
	require.NoError(t, err)
	requireJSON(t, lockFile, lock)
	text, err := lock.Render()
	require.NoError(t, err)
	again, err := forrst.Parse(text)
	require.NoError(t, err)
	require.Equal(t, lock, again)
}

func TestForrstServerMustGenerateAndStoreTheOwner(t *testing.T) {
	o := options(t, charge)
	lock, err := forrst.NewLock(o, "payments.charge", now)
	require.NoError(t, err)
	require.Len(t, lock.Owner, 36)
	require.Empty(t, o.Owner)
	require.Equal(t, lock.Owner, o.Granted(lock).Owner)
}

func TestForrstLockFileErrorsNameTheField(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(lockFile, from, to, 1) }
	for text, field := range map[string]string{
		change("urn:forrst:ext:atomicLock", "urn:forrst:ext:atomiclock"): "urn",
		change(`"key":`, `"Key":`):                                       "key",
		change("lock:payments.charge:user:123", strings.Repeat("/", 90)): "key",
		change(owner, ""):                                      "owner",
		change(`"owner":`, `"owner":"x","owner":`):             "owner",
		change("10:30:00Z", "10:30:00"):                        "acquired_at",
		change("10:30:30Z", "10:30:30+01:00"):                  "expires_at",
		change(`,"expires_at":"2024-03-15T10:30:30Z"`, ""):     "expires_at",
		change("2024-03-15T10:30:30Z", "0001-01-01T00:00:00Z"): "expires_at",
	} {
		_, err := forrst.Parse([]byte(text))
		requireFieldError(t, err, field)
	}
	_, err := (&forrst.Lock{}).Render()
	requireFieldError(t, err, "urn")
	_, err = forrst.NewLock(options(t, charge), strings.Repeat("f", 250), now)
	requireFieldError(t, err, "key")
}

func TestForrstLockExpiresByItself(t *testing.T) {
	lock, err := forrst.Parse([]byte(lockFile))
	require.NoError(t, err)
	expires := now.Add(30 * time.Second)
	require.False(t, lock.Expired(now))
	require.False(t, lock.Expired(expires))
	require.True(t, lock.Expired(expires.Add(1)))
}

func TestForrstFacts(t *testing.T) {
	written := lockfact.Origin{Host: "s1", ClockOffset: time.Second}
	facts, err := forrst.FactsOf([]byte(lockFile), written)
	require.NoError(t, err)
	require.Equal(t, lockfact.Facts{
		Format:    lockfact.Forrst,
		Holder:    owner,
		Host:      "s1",
		IssuedAt:  now.Add(-time.Second).UnixNano(),
		ExpiresAt: now.Add(29 * time.Second).UnixNano(),
		Guard:     lockfact.GuardOwner,
		OnStale:   lockfact.Remove,
	}, facts)
	_, err = forrst.FactsOf(nil, written)
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(lockFile))
	f.Add([]byte(lockFile[:80]))
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		lock, err := forrst.Parse(content)
		if err != nil {
			return
		}
		text, err := lock.Render()
		require.NoError(t, err)
		again, err := forrst.Parse(text)
		require.NoError(t, err)
		require.Equal(t, lock.Key, again.Key)
		require.True(t, lock.ExpiresAt.Equal(again.ExpiresAt))
	})
}
