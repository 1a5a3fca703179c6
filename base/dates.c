/* base/dates.c: HTTP dates; see dates.h. Any thread. */
#include "base/dates.h"

enum { DAY_S = 86400 };

/* What a date says before it is known to be a possible one. */
struct civil {
    int64_t year;
    unsigned month, day; /* from 1 */
    unsigned hour, minute, second;
};

static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
/* 1 January 1970 was a Thursday, so that this table begins with it. */
static const char day_names[7][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
static const struct slice long_day_names[7] = {
    SLICE_INIT("Thursday"), SLICE_INIT("Friday"),  SLICE_INIT("Saturday"),  SLICE_INIT("Sunday"),
    SLICE_INIT("Monday"),   SLICE_INIT("Tuesday"), SLICE_INIT("Wednesday"),
};

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static unsigned days_in_month(int64_t year, unsigned month)
{
    static const uint8_t days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Days since 1970 of a day of the Gregorian calendar. Years begin in March here, so that the leap
 * day comes last. */
static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static struct civil civil_from_days(int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_index = (5 * day_of_year + 2) / 153;
    unsigned month = (unsigned)(month_index < 10 ? month_index + 3 : month_index - 9);
    return (struct civil){ .year = year_of_era + era * 400 + (month <= 2),
                           .month = month,
                           .day = (unsigned)(day_of_year - (153 * month_index + 2) / 5 + 1) };
}

/* RFC 9110 5.6.7: the ranges of the grammar; second 60 is a leap second and taken at any minute. */
static bool is_possible(const struct civil *c)
{
    return c->day >= 1 && c->day <= days_in_month(c->year, c->month) && c->hour <= 23 &&
           c->minute <= 59 && c->second <= 60;
}

static int64_t seconds_of(const struct civil *c)
{
    return days_from_civil(c->year, c->month, c->day) * DAY_S + c->hour * 3600 + c->minute * 60 +
           c->second;
}

/* ---- reading: each takes its piece off the front of `*s` or says no -------------------------- */

static bool take(struct slice *s, struct slice what)
{
    if (!slice_has_prefix_nocase(*s, what))
        return false;
    s->ptr += what.len;
    s->len -= what.len;
    return true;
}

static bool take_digits(struct slice *s, size_t count, unsigned *value)
{
    if (s->len < count)
        return false;
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++) {
        char c = s->ptr[i];
        if (c < '0' || c > '9')
            return false;
        sum = sum * 10 + (unsigned)(c - '0');
    }
    s->ptr += count;
    s->len -= count;
    *value = sum;
    return true;
}

static bool take_month(struct slice *s, unsigned *month)
{
    for (unsigned i = 0; i < 12; i++)
        if (take(s, (struct slice){ month_names[i], 3 })) {
            *month = i + 1;
            return true;
        }
    return false;
}

/* The name alone: whether it is that date's day of the week says nothing about when the date is. */
static bool take_day_name(struct slice *s)
{
    for (unsigned i = 0; i < 7; i++)
        if (take(s, (struct slice){ day_names[i], 3 }))
            return true;
    return false;
}

static bool take_long_day_name(struct slice *s)
{
    for (unsigned i = 0; i < 7; i++)
        if (take(s, long_day_names[i]))
            return true;
    return false;
}

static bool take_time(struct slice *s, struct civil *c)
{
    return take_digits(s, 2, &c->hour) && take(s, SLICE(":")) && take_digits(s, 2, &c->minute) &&
           take(s, SLICE(":")) && take_digits(s, 2, &c->second);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool read_fixdate(struct slice s, struct civil *c)
{
    unsigned year;
    if (!(take_day_name(&s) && take(&s, SLICE(", ")) && take_digits(&s, 2, &c->day) &&
          take(&s, SLICE(" ")) && take_month(&s, &c->month) && take(&s, SLICE(" ")) &&
          take_digits(&s, 4, &year) && take(&s, SLICE(" ")) && take_time(&s, c) &&
          take(&s, SLICE(" GMT")) && s.len == 0))
        return false;
    c->year = year;
    return true;
}

/* RFC 9110 5.6.7: a two-digit year that would be more than 50 years ahead is of the past. */
static int64_t year_of_two_digits(unsigned digits, const struct civil *c, int64_t now_s)
{
    int64_t this_year = civil_from_days(now_s / DAY_S).year;
    int64_t year = this_year - this_year % 100 + digits;
    if (year <= this_year - 50)
        year += 100;
    else if (year > this_year + 50)
        year -= 100;
    if (year != this_year + 50)
        return year;
    struct civil then = *c; /* fifty years ahead to the year: the day decides */
    then.year = this_year;
    return seconds_of(&then) > now_s ? year - 100 : year;
}

/* "Sunday, 06-Nov-94 08:49:37 GMT" */
static bool read_rfc850(struct slice s, int64_t now_s, struct civil *c)
{
    unsigned year;
    if (!(take_long_day_name(&s) && take(&s, SLICE(", ")) && take_digits(&s, 2, &c->day) &&
          take(&s, SLICE("-")) && take_month(&s, &c->month) && take(&s, SLICE("-")) &&
          take_digits(&s, 2, &year) && take(&s, SLICE(" ")) && take_time(&s, c) &&
          take(&s, SLICE(" GMT")) && s.len == 0))
        return false;
    c->year = year_of_two_digits(year, c, now_s);
    return true;
}

/* "Sun Nov  6 08:49:37 1994" */
static bool read_asctime(struct slice s, struct civil *c)
{
    unsigned year;
    if (!(take_day_name(&s) && take(&s, SLICE(" ")) && take_month(&s, &c->month) &&
          take(&s, SLICE(" "))))
        return false;
    size_t day_digits = take(&s, SLICE(" ")) ? 1 : 2;
    if (!(take_digits(&s, day_digits, &c->day) && take(&s, SLICE(" ")) && take_time(&s, c) &&
          take(&s, SLICE(" ")) && take_digits(&s, 4, &year) && s.len == 0))
        return false;
    c->year = year;
    return true;
}

bool date_parse(struct slice text, int64_t now_s, int64_t *seconds)
{
    struct civil c = { 0 };
    if (!read_fixdate(text, &c) && !read_rfc850(text, now_s, &c) && !read_asctime(text, &c))
        return false;
    if (!is_possible(&c))
        return false;
    *seconds = seconds_of(&c);
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_two(char *out, unsigned value)
{
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
}

void date_format(int64_t seconds, char out[DATE_LENGTH])
{
    const int64_t last = 253402300799; /* the end of 9999: the form has four digits for the year */
    int64_t at = seconds < 0 ? 0 : seconds > last ? last : seconds;
    int64_t days = at / DAY_S;
    unsigned rest = (unsigned)(at % DAY_S);
    struct civil c = civil_from_days(days);
    memcpy(out, "Thu, 01 Jan 1970 00:00:00 GMT", DATE_LENGTH);
    memcpy(out, day_names[days % 7], 3);
    put_two(out + 5, c.day);
    memcpy(out + 8, month_names[c.month - 1], 3);
    put_two(out + 12, (unsigned)c.year / 100);
    put_two(out + 14, (unsigned)c.year % 100);
    put_two(out + 17, rest / 3600);
    put_two(out + 20, rest / 60 % 60);
    put_two(out + 23, rest % 60);
}
